#!/bin/sh
echo "script got $# arguments: $*"
