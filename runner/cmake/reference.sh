#!/usr/bin/env bash
# Copies what schema_gen wrote to where it is committed: reference.sh GENERATED.
set -euo pipefail
cd "$(dirname "$0")/../.."
rm -rf schemas/reference
mkdir -p schemas/reference
cp "$1"/reference/*.md schemas/reference/
cp "$1"/schemas/recipe.schema.json schemas/recipe.schema.json
cp "$1"/schemas/hashed_keys.json schemas/hashed_keys.json
