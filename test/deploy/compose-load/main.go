// compose-load reads compose files as `docker compose up` does (Compose's own loader: environment, .env, include, extends,
// overrides, profiles) and prints what would be started, as JSON. Its arguments are the files; without any, the default ones
// of the working directory.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	options, err := cli.NewProjectOptions(os.Args[1:],
		cli.WithOsEnv, cli.WithEnvFiles(), cli.WithDotEnv, cli.WithConfigFileEnv, cli.WithDefaultConfigPath, cli.WithDefaultProfiles())
	fail(err)
	project, err := options.LoadProject(context.Background())
	fail(err)
	text, err := project.MarshalJSON()
	fail(err)
	fmt.Println(string(text))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
