#!/usr/bin/env bash
# Makes the picture of the README from a real run of the quickstart: docs/pictures/make.sh
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
./roux run recipes/quickstart.yaml --new --output-dir "$out"
./roux runs plot loss last --metric val/loss --output-dir "$out" --width 760 --height 320 --svg docs/pictures/quickstart.svg
