package tests

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/managed-lakehouse/managed-lakehouse/output"
)

var update = flag.Bool("update", false, "write docs/reference.md anew")

const referencePath = "../docs/reference.md"

// The config spec is the one source of the reference: whoever changes a field
// and not the page fails here.
func TestReferenceIsUpToDate(t *testing.T) {
	view, ok := service.GlobalEnvironment().GetOutputConfig(output.Name)
	require.True(t, ok)
	data, err := view.TemplateData()
	require.NoError(t, err)
	page := renderReference(data)
	if *update {
		require.NoError(t, os.WriteFile(referencePath, page, 0o644))
	}
	got, err := os.ReadFile(referencePath)
	require.NoError(t, err)
	require.Equal(t, string(page), string(got), "docs/reference.md is out of date: go test ./tests -run TestReference -update")
}

func renderReference(data service.TemplateDataPlugin) []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }

	p("# Reference: `%s`\n\n", data.Name)
	p("<!-- Written by `go test ./tests -run TestReference -update` from the config spec. -->\n\n")
	p("%s\n\n%s\n\n", data.Summary, markdown(data.Description))

	p("## Config\n\nThe common fields:\n\n```yaml\n%s```\n\n", data.CommonConfigYAML)
	p("All fields, with their defaults:\n\n```yaml\n%s```\n\n", data.AdvancedConfigYAML)

	if len(data.Examples) > 0 {
		p("## Examples\n\n")
		for _, e := range data.Examples {
			p("### %s\n\n%s\n\n```yaml\n%s\n```\n\n", e.Title, strings.TrimSpace(e.Summary), strings.TrimSpace(e.Config))
		}
	}

	p("## Fields\n")
	for _, f := range data.Fields {
		p("\n### `%s`\n\n%s\n\n", f.FullName, markdown(f.Description))
		var facts []string
		fact := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
		fact("type: `%s`", f.Type)
		if f.DefaultMarshalled != "" {
			fact("default: `%s`", f.DefaultMarshalled)
		}
		if f.IsInterpolated {
			fact("interpolated for each row")
		}
		if f.IsSecret {
			fact("secret: never logged or shown")
		}
		p("%s\n", strings.Join(facts, " · "))
		if len(f.AnnotatedOptions) > 0 {
			p("\n| option | |\n|---|---|\n")
			for _, o := range f.AnnotatedOptions {
				p("| `%s` | %s |\n", o[0], markdown(o[1]))
			}
		} else if len(f.Options) > 0 {
			p("\nOptions: `%s`\n", strings.Join(f.Options, "`, `"))
		}
		if len(f.ExamplesMarshalled) > 0 {
			p("\n```yaml\n%s```\n", strings.Join(f.ExamplesMarshalled, "# or\n"))
		}
	}
	return b.Bytes()
}

var heading = regexp.MustCompile(`(?m)^=+ `)

// markdown is a description of the spec as Markdown: headings are written the way
// the framework's own docs are, and lines are broken where the source was.
func markdown(text string) string {
	text = heading.ReplaceAllStringFunc(strings.TrimSpace(text), func(m string) string { return strings.Repeat("#", len(m)-1) + " " })
	var out []string
	for _, paragraph := range strings.Split(text, "\n\n") {
		lines := strings.Split(paragraph, "\n")
		if slices.ContainsFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, "- ") || strings.HasPrefix(l, "|") || strings.HasPrefix(l, "```")
		}) {
			out = append(out, paragraph)
		} else {
			out = append(out, strings.Join(lines, " "))
		}
	}
	return strings.Join(out, "\n\n")
}
