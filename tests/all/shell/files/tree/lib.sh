greeting=hello
shout() { echo "$1!"; }
