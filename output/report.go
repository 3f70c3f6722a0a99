package output

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/managed-lakehouse/managed-lakehouse/commit"
)

// Report is what one output leaves behind when it closes.
type Report struct {
	Label   string // of the output in its config; may be empty
	Summary Summary
	Tables  []TableReport // that were committed to, by name
}

// TableReport tells where one table lies.
type TableReport struct {
	Name    string // dotted
	Iceberg string // location of the Iceberg table
	Delta   string // root of the Delta table; empty where there is none
}

// reports gathers the reports of outputs that have closed.
var reports struct {
	mu  sync.Mutex
	all []Report
}

func fileReport(r Report) {
	reports.mu.Lock()
	defer reports.mu.Unlock()
	reports.all = append(reports.all, r)
}

// TakeReports returns the reports of the outputs that have closed since it was
// last called, in the order of closing.
func TakeReports() []Report {
	reports.mu.Lock()
	defer reports.mu.Unlock()
	out := reports.all
	reports.all = nil
	return out
}

func tableReports(touched map[string]commit.Places) (out []TableReport) {
	for name, p := range touched {
		out = append(out, TableReport{Name: name, Iceberg: p.Iceberg, Delta: p.Delta})
	}
	slices.SortFunc(out, func(a, b TableReport) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// maxListed bounds the tables that a printed report shows.
const maxListed = 5

// Format is the report as text for the end of a run: the summary, where each table
// lies, and one ready line for opening it with each of four engines.
func (r Report) Format() string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Summary)
	for i, t := range r.Tables {
		if i == maxListed {
			fmt.Fprintf(&b, "\n... and %d more tables\n", len(r.Tables)-maxListed)
			break
		}
		ice := plainPath(t.Iceberg)
		fmt.Fprintf(&b, "\n%s\n", t.Name)
		fmt.Fprintf(&b, "  iceberg    %s\n", ice)
		if t.Delta != "" {
			fmt.Fprintf(&b, "  delta      %s\n", plainPath(t.Delta))
		}
		fmt.Fprintf(&b, "  DuckDB     INSTALL iceberg; LOAD iceberg; SELECT count(*) FROM iceberg_scan('%s');\n", quoteSQL(ice))
		fmt.Fprintf(&b, "  pyiceberg  from pyiceberg.table import StaticTable; StaticTable.from_metadata(%s).scan().to_arrow()\n", quotePython(ice))
		if t.Delta != "" {
			delta := plainPath(t.Delta)
			fmt.Fprintf(&b, "  deltalake  from deltalake import DeltaTable; DeltaTable(%s).to_pyarrow_table()\n", quotePython(delta))
			fmt.Fprintf(&b, "  Spark      spark.read.format(\"delta\").load(%s)\n", quotePython(delta))
		} else {
			fmt.Fprintf(&b, "  Spark      spark.read.format(\"iceberg\").load(%s)\n", quotePython(t.Iceberg))
		}
	}
	return b.String()
}

// plainPath is a file location as a path; other locations stay as they are.
func plainPath(location string) string {
	if u, err := url.Parse(location); err == nil && u.Scheme == "file" && u.Host == "" {
		return u.Path
	}
	return location
}

func quoteSQL(s string) string { return strings.ReplaceAll(s, "'", "''") }

func quotePython(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
