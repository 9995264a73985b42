#!/bin/sh
# Generates the Go code of the protobuf contracts into gen/. Running it twice changes nothing.
set -eu
cd "$(dirname "$0")"
rm -rf gen
exec ../../node_modules/.bin/buf generate --template buf.gen.yaml
