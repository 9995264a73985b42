#!/bin/sh
# Generates the Go code of the protobuf contracts into gen/. Running it twice changes nothing; when it fails, gen/ is
# what it was.
set -eu
cd "$(dirname "$0")"
rm -rf .generated
trap 'rm -rf .generated' EXIT
../../node_modules/.bin/buf generate --template buf.gen.yaml --output .generated
rm -rf gen
mv .generated/gen gen
