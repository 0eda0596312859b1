// Runs harnesses without an engine, so that what once was of interest stays in order: each that is named, as
// -NAME, over the files behind it, in a process of its own; it is named once more where that ended well.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INPUT_MAX = 1 << 20 };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static int run(char **argv, int count) {
  static uint8_t bytes[INPUT_MAX];
  LLVMFuzzerInitialize(&count, &argv);
  for (int index = 1; index < count; index++) {
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
  return 0;
}

int main(int argc, char **argv) {
  bool is_in_order = true;
  for (int from = 1, to; from < argc; from = to) {
    for (to = from + 1; to < argc && argv[to][0] != '-';) to++;
    pid_t child = fork();
    if (child == 0) return run(argv + from, to - from);
    int status = -1;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
      printf("%s %d\n", argv[from], to - from - 1);
    else
      is_in_order = false;
    fflush(stdout);  // what is not written yet, the next one would write as well
  }
  return is_in_order ? 0 : 1;
}
