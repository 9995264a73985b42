package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

type visitResult struct {
	Millis   []float64 `json:"millis"`
	Statuses []int     `json:"statuses"`
	Failed   int       `json:"failed"`
}

// visit asks for / over plain HTTP/1.1 until its time is over, and connects anew where a connection ends.
func visit(arguments []string) (any, error) {
	flags := flag.NewFlagSet("visit", flag.ExitOnError)
	address := flags.String("address", "", "host:port")
	host := flags.String("host", "localhost", "name that is asked for")
	every := flags.Duration("every", 20*time.Millisecond, "time between two requests")
	seconds := flags.Float64("seconds", 10, "how long")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	result := visitResult{Millis: []float64{}, Statuses: []int{}}
	end := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	var conn net.Conn
	var reader *bufio.Reader
	for time.Now().Before(end) {
		begun := time.Now()
		status, err := func() (int, error) {
			if conn == nil {
				var err error
				if conn, err = dialFrom("127.0.0.1", *address); err != nil {
					return 0, err
				}
				reader = bufio.NewReader(conn)
			}
			_ = conn.SetDeadline(begun.Add(dialTime))
			if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", *host); err != nil {
				return 0, err
			}
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				return 0, err
			}
			_, err = io.Copy(io.Discard, response.Body)
			return response.StatusCode, err
		}()
		if err != nil {
			result.Failed++
			if conn != nil {
				conn.Close()
				conn = nil
			}
		} else {
			result.Millis = append(result.Millis, float64(time.Since(begun).Microseconds())/1000)
			result.Statuses = append(result.Statuses, status)
		}
		time.Sleep(*every)
	}
	return result, nil
}
