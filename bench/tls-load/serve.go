package main

import (
	"bytes"
	"flag"
	"net/http"
)

const answerBytes = 1024

// serve answers every request with the same bytes, as net/http does by itself.
func serve(arguments []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	address := flags.String("address", "", "host:port")
	certificate := flags.String("certificate", "", "file with the chain in PEM")
	key := flags.String("key", "", "file with the key in PEM")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	body := bytes.Repeat([]byte("x"), answerBytes)
	server := &http.Server{Addr: *address, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{"text/plain"}
		_, _ = w.Write(body)
	})}
	return server.ListenAndServeTLS(*certificate, *key)
}
