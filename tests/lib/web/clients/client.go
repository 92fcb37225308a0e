// SPDX-License-Identifier: GPL-2.0-or-later

// Requests of net/http on kept connections, each for another node: client CA URL 1.2|1.3 REQUESTS SEED
// Prints as JSON how many connections it made, and whom each request was for and who answered it.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

var lengths = []int{0, 1, 1000, 16384, 16385, 100000, 3000000}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// As web/backend.py has it.
func content(target string, size int) []byte {
	seed := sha256.Sum256([]byte(target))
	return bytes.Repeat(seed[:], size/len(seed)+1)[:size]
}

func main() {
	ca, err := os.ReadFile(os.Args[1])
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	version := uint16(tls.VersionTLS13)
	if os.Args[3] == "1.2" {
		version = tls.VersionTLS12
	}
	requests, err := strconv.Atoi(os.Args[4])
	must(err)
	seed, err := strconv.ParseInt(os.Args[5], 10, 64)
	must(err)
	order := rand.New(rand.NewSource(seed))
	var connections int32
	dialer := &net.Dialer{}
	client := &http.Client{Timeout: 60 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: version, MaxVersion: version},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			atomic.AddInt32(&connections, 1)
			return dialer.DialContext(ctx, network, address)
		},
	}}
	var asked, answered []string
	for number := 0; number < requests; number++ {
		node, length := fmt.Sprintf("n%d", number%3+1), lengths[order.Intn(len(lengths))]
		target := fmt.Sprintf("/len/%d?%d.%d", length, seed, number)
		method, right, body := "GET", content(target, length), []byte(nil)
		if order.Intn(2) == 0 {
			method, target, body = "POST", "/upload", right
			sum := sha256.Sum256(body)
			right = []byte(hex.EncodeToString(sum[:]))
		}
		request, err := http.NewRequest(method, os.Args[2]+target, bytes.NewReader(body))
		must(err)
		request.Header.Set("X-To", node)
		response, err := client.Do(request)
		must(err)
		got, err := io.ReadAll(response.Body)
		must(err)
		response.Body.Close()
		if response.StatusCode != 200 || !bytes.Equal(got, right) {
			must(fmt.Errorf("%s %s: %d, %d bytes", method, target, response.StatusCode, len(got)))
		}
		asked, answered = append(asked, node), append(answered, response.Header.Get("X-Node"))
	}
	must(json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"connections": connections, "asked": asked, "answered": answered}))
}
