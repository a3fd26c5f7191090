// Verifies the messages of .ci/try-webhooks.sh with the block of docs/events.md.

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

type vectors struct {
	Now     int64
	Vectors []struct {
		Name, Body string
		Error      *string
		Secrets    []string
		Headers    map[string]string
	}
}

func main() {
	file, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var all vectors
	if err := json.Unmarshal(file, &all); err != nil {
		panic(err)
	}
	for _, one := range all.Vectors {
		header := http.Header{}
		for name, value := range one.Headers {
			header.Set(name, value)
		}
		accepted := false
		for _, secret := range one.Secrets {
			accepted = accepted || verify(secret, header, []byte(one.Body), time.Unix(all.Now, 0)) == nil
		}
		// The block reads no event.
		if wanted := one.Error == nil || *one.Error == "not-events"; accepted != wanted {
			panic(fmt.Sprintf("document: %s: accepted is %t", one.Name, accepted))
		}
		fmt.Println("ok document: " + one.Name)
	}
}
