// What a daemon tells its guard to clean up after it.
#include "../init/guard.c"

#include "harness.h"

static struct entries named;
static struct daemon daemon_of_ours;

static bool climbs_anywhere(const char *path) {
  size_t length = strlen(path);
  return strstr(path, "/../") != NULL || (length >= 3 && strcmp(path + length - 3, "/..") == 0);
}

static void parse(void) { (void)hear_out(&named, &daemon_of_ours); }

void fuzz_guard(void) {
  named.count = 0;
  daemon_of_ours = (struct daemon){.pid = 4711, .fd = 0};
  expect(outlives(parse), "an end of the guard by a line");
  expect(named.count <= ENTRIES_MAX, "more entries than there is room for");
  for (size_t index = 0; index < named.count; index++) {
    const char *path = named.list[index].path;
    expect(path[0] == '/' && path[1] != '\0' && strlen(path) < PATH_BYTES, "a path that is none");
    expect(!climbs_anywhere(path), "a path that climbs");
  }
}
