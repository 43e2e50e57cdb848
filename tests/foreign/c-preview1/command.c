// A WASI preview 1 core module in C: finds "text" in the JSON on standard input and prints it in capitals.
// Exits with 3 if the input has "fail":true, and with 4 without a text.

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static char input[1 << 20];

int main(void) {
  size_t length = fread(input, 1, sizeof input - 1, stdin);
  input[length] = 0;
  if (strstr(input, "\"fail\":true") || strstr(input, "\"fail\": true")) {
    fputs("asked to fail\n", stderr);
    return 3;
  }
  // Good enough for a test: a text with quotes or escapes is cut off there.
  const char *text = strstr(input, "\"text\":");
  if (!text) {
    fputs("there is no text\n", stderr);
    return 4;
  }
  text = strchr(text + strlen("\"text\":"), '"') + 1;
  while (*text && *text != '"' && *text != '\\') putchar(toupper((unsigned char)*text++));
  putchar('\n');
  return 0;
}
