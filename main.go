// Command managed-lakehouse is a Benthos binary whose output managed_lakehouse
// turns streams into lakehouse tables.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure/extended"
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/managed-lakehouse/managed-lakehouse/output"
)

// version and built are set by the linker in releases.
var (
	version = ""
	built   = ""
)

func main() {
	code, err := service.RunCLIToCode(context.Background(),
		service.CLIOptSetVersion(buildVersion(), built),
		service.CLIOptSetBinaryName("managed-lakehouse"),
		service.CLIOptSetProductName("Managed Lakehouse"),
		service.CLIOptOnConfigParse(prepare),
		service.CLIOptOnStreamStart(func(*service.RunningStreamSummary) error {
			go drainOnSignal()
			return nil
		}),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	printReports(os.Stdout)
	os.Exit(code)
}

// drainOnSignal stands beside the signal handler of Benthos, which stops the input:
// at the first signal, what is pending is committed at once instead of waiting for
// its trigger. A second signal ends the process on the spot; rows that are not
// committed are not acknowledged either, and come again. It is started with the
// pipeline, so that other commands are interrupted as usual.
func drainOnSignal() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
	output.Drain()
	if s, ok := (<-signals).(syscall.Signal); ok {
		os.Exit(128 + int(s))
	}
	os.Exit(1)
}

// prepare looks at the main config before the pipeline is built: it tells of settings
// that keep the output from its purpose, and bounds the garbage by memory_limit.
func prepare(conf *service.ParsedConfig) error {
	if conf == nil {
		return nil
	}
	all, err := conf.FieldAny()
	if err != nil {
		return nil // streams mode has no pipeline in its main config
	}
	m := output.NewMainConfig(all)
	for _, w := range m.Warnings() {
		conf.Resources().Logger().Warn(w)
	}
	boundGarbage(m.Memory())
	return nil
}

// printReports tells what the run did, where the tables lie, and how to open them.
func printReports(w io.Writer) {
	for _, r := range output.TakeReports() {
		fmt.Fprintln(w)
		fmt.Fprint(w, r.Format())
	}
}

func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return output.Version + "-dev"
}
