package commit

import (
	"errors"
	"fmt"
	"strings"
)

// ErrSchemaChanged says that the table's schema is no longer the one that the
// draft's files were written for: another writer evolved it. Nothing was
// committed. Take [Table.Schema], convert the rows again, and begin anew.
var ErrSchemaChanged = errors.New("the table's schema was changed by another writer")

// ErrFilesLost says that a data file could not be stored whole: the draft is of
// no use any more, and nothing was committed. Convert the rows again, and begin anew.
var ErrFilesLost = errors.New("a data file could not be stored")

// RefusedError is a definite refusal: nothing of the draft was committed, and
// trying the same again would be refused again.
type RefusedError struct {
	Table []string
	Err   error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("table %s: refused: %v", strings.Join(e.Table, "."), e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }
