#!/usr/bin/env bash
# Generates the clients from openapi.yaml, adds what is written by hand, and so makes complete packages in
# .tools/clients/python and .tools/clients/typescript. Fails if a generator warns.
#
# Usage: clients/generate.sh [python|typescript]. Needs Python of 3.11 or later; for TypeScript also Node of 20.19 or
# later with npm. What else it needs is installed in .tools/clients.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/.tools/clients
venv=$tools/venv

install_python() {
    cmp --silent clients/requirements.txt "$venv/requirements.txt" && return
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement clients/requirements.txt
    # Copied last, so that an interrupted installation starts over.
    cp clients/requirements.txt "$venv"
}

# copy LANGUAGE: what is written by hand, and the licences, without what an earlier run generated.
copy() {
    mkdir -p "$tools/$1"
    rm -rf "$tools/$1/src" "$tools/$1/checks" "$tools/$1/dist"
    cp -R "clients/$1/." LICENSE-APACHE LICENSE-MIT "$tools/$1"
}

# repository: the URL that the packages name. A path of this machine, and a URL with a password, stay out.
repository() {
    local url=${REPOSITORY_URL:-$(git config remote.origin.url || true)}
    if [[ $url =~ ^https://[A-Za-z0-9.-]+(/[A-Za-z0-9._~-]+)+/?$ ]]; then echo "${url%.git}"; fi
}

flatten() {
    "$venv/bin/python" clients/flatten.py openapi.yaml "$tools/$1/openapi.json"
}

python() {
    copy python
    local url
    url=$(repository)
    [[ -z $url ]] || printf '\n[project.urls]\nRepository = "%s"\n' "$url" >>"$tools/python/pyproject.toml"
    flatten python
    PATH=$venv/bin:$PATH openapi-python-client generate --fail-on-warning --meta none --overwrite \
        --path "$tools/python/openapi.json" --config clients/python/generator.yaml \
        --output-path "$tools/python/src/scheduled_payments/generated"
}

typescript() {
    copy typescript
    local url
    url=$(repository)
    flatten typescript
    cd "$tools/typescript"
    [[ -z $url ]] || npm pkg set "repository=$url"
    if ! cmp --silent package-lock.json node_modules/package-lock.json; then
        npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
        cp package-lock.json node_modules
    fi
    node_modules/.bin/openapi-ts 2>&1 | tee generator.log
    # The generator has no option that makes a warning an error.
    if grep --ignore-case --quiet 'warn\|error\|❗\|⚠' generator.log; then
        echo "the generator of the TypeScript client warns" >&2
        return 1
    fi
    node_modules/.bin/tsc
}

install_python
case ${1:-both} in
    both) python; typescript ;;
    python | typescript) "$1" ;;
    *) echo "usage: clients/generate.sh [python|typescript]" >&2; exit 2 ;;
esac
