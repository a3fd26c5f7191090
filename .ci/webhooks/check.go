// Verifies the cases of .ci/try-webhooks.sh with the block of docs/events.md.

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type testCase struct {
	Name, Secret, Body string
	Accepted           bool
	Headers            map[string]string
}

func main() {
	file, err := os.Open(os.Args[1] + "/cases.jsonl")
	if err != nil {
		panic(err)
	}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var one testCase
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			panic(err)
		}
		header := func(name string) string { return one.Headers[name] }
		if accepted := verify(one.Secret, header, []byte(one.Body)) == nil; accepted != one.Accepted {
			panic(fmt.Sprintf("document: %s: accepted is %t", one.Name, accepted))
		}
		fmt.Println("ok document: " + one.Name)
	}
}
