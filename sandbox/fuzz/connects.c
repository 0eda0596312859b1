// Addresses that a server would connect to, as they stand in its memory: the first byte is the length that it
// says.
#include <string.h>
#include <unistd.h>

#include "../init/egress.h"
#include "harness.h"

// Nothing is, so that every path is told.
bool is_absent(pid_t pid, const char *path) {
  (void)pid;
  expect(strlen(path) > 0, "no path");
  return true;
}

void fuzz_connects(void) {
  if (input.left == 0) return;
  size_t length = input.at[0];
  char *line = exact((char[LINE_ROOM]){0}, LINE_ROOM);
  const void *address = exact(input.at + 1, input.left - 1);
  // Of a length that lies, the kernel gives what is there.
  if (length > input.left - 1) length = input.left - 1;
  if (!look_at_connect(getpid(), (uint64_t)(uintptr_t)address, length, line)) return;
  expect(memchr(line, '\0', LINE_ROOM) != NULL, "a line without its end");
  expect(strncmp(line, "local ", 6) == 0 || strncmp(line, "tcp ", 4) == 0, "a line that says something else");
  for (const char *at = line; *at != '\0'; at++)
    expect(*at >= 0x20 && *at < 0x7f, "a letter that forges a line");
}
