// Renders the chart without Helm: go run deploy/render.go CHART VALUES.json. The templates use only
// what text/template has built in, so that this is what Helm makes of them, too.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"text/template"
)

func main() {
	if err := render(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(chart, values string) error {
	text, err := os.ReadFile(values)
	if err != nil {
		return err
	}
	var data map[string]any
	if err := json.Unmarshal(text, &data); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return err
	}
	sort.Strings(files)
	parsed, err := template.New("chart").Option("missingkey=error").ParseFiles(files...)
	if err != nil {
		return err
	}
	for _, file := range files {
		if filepath.Ext(file) != ".yaml" {
			continue
		}
		fmt.Printf("---\n# %s\n", filepath.Base(file))
		if err := parsed.ExecuteTemplate(os.Stdout, filepath.Base(file), data); err != nil {
			return err
		}
		fmt.Println()
	}
	return nil
}
