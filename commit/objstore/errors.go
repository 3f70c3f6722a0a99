package objstore

import "errors"

var (
	// ErrNotFound is wrapped by the error of reading an object that is not there.
	ErrNotFound = errors.New("no such object")
	// ErrExists is wrapped by the error of a put-if-absent that found the name
	// taken: the one definite refusal among the errors of a write.
	ErrExists = errors.New("object already exists")
	// ErrKey is wrapped by the error of a key that could lead astray; nothing was done.
	ErrKey = errors.New("key refused")
)
