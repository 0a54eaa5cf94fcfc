#!/usr/bin/env bash
# Installs Debian's packages chromium and fonts-dejavu-core, with which the tests look at web pages. Where that is not
# possible, it says so and goes on: the tests that need a browser are then skipped, and say why.
set -uo pipefail
if command -v chromium >/dev/null; then exit 0; fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "No chromium here, and no apt-get as root to install it: tests of web pages will be skipped."
    exit 0
fi
echo "Installing Debian's packages chromium and fonts-dejavu-core, for tests of web pages."
apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends \
    chromium fonts-dejavu-core >/dev/null || echo "That failed: tests of web pages will be skipped."
exit 0
