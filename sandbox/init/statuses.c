// The exit status of an error code, as src/errors.ts has it; the build makes the table, a test compares it.
#include "shim.h"

#include <stddef.h>
#include <string.h>

static const struct {
  const char *code;
  int status;
} statuses[] = {
#include "statuses.gen.h"
};

int status_of_code(const char *code) {
  for (size_t index = 0; index < sizeof statuses / sizeof statuses[0]; index++)
    if (strcmp(statuses[index].code, code) == 0) return statuses[index].status;
  return STATUS_FAILED;
}
