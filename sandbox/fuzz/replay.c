// Runs a harness over the files that it is given, without an engine: what once was of interest stays in
// order.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { INPUT_MAX = 1 << 20 };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int main(int argc, char **argv) {
  static uint8_t bytes[INPUT_MAX];
  LLVMFuzzerInitialize(&argc, &argv);
  for (int index = 1; index < argc; index++) {
    FILE *file = fopen(argv[index], "rb");
    if (file == NULL) return 2;
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    fprintf(stderr, "%s\n", argv[index]);  // the last one named is the one that was found
    uint8_t *input = malloc(length == 0 ? 1 : length);
    for (size_t at = 0; at < length; at++) input[at] = bytes[at];
    LLVMFuzzerTestOneInput(input, length);
    free(input);
  }
  printf("%d\n", argc - 1);
  return 0;
}
