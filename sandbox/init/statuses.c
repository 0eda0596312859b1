// The exit status of each error code that does not end with 1; a test holds it to src/errors.ts.
#include "shim.h"

#include <stddef.h>
#include <string.h>

static const struct {
  const char *code;
  int status;
} statuses[] = {
    {"ERR_USAGE", 7},
    {"ERR_CONFIG_NOT_FOUND", 7},
    {"ERR_CONFIG_SYNTAX", 7},
    {"ERR_CONFIG_INVALID", 7},
    {"ERR_CONFIG_UNSAFE", 7},
    {"ERR_CONFIG_VARIABLE", 7},
    {"ERR_CONFIG_SCOPE", 7},
    {"ERR_PROFILE_UNKNOWN", 8},
    {"ERR_PROFILE_INVALID", 7},
    {"ERR_PROFILE_WIDENS", 7},
    {"ERR_PROFILE_EXCEEDED", 7},
    {"ERR_COMMAND_NOT_ALLOWED", 2},
    {"ERR_COMMAND_NOT_FOUND", 8},
    {"ERR_COMMAND_UNSAFE", 2},
    {"ERR_COMMAND_CHANGED", 2},
    {"ERR_ARGUMENT_REFUSED", 2},
    {"ERR_PACKAGE_CHANGED", 2},
    {"ERR_PACKAGE_UNSAFE", 2},
    {"ERR_ENVIRONMENT_REFUSED", 7},
    {"ERR_MOUNT_REFUSED", 7},
    {"ERR_SERVER_NOT_FOUND", 8},
    {"ERR_SERVER_DISABLED", 8},
    {"ERR_CALL_CANCELLED", 3},
    {"ERR_TOOL_NOT_FOUND", 8},
    {"ERR_POLICY_DENIED", 2},
    {"ERR_APPROVAL_UNAVAILABLE", 2},
    {"ERR_METHOD_REFUSED", 2},
    {"ERR_MESSAGE_AMBIGUOUS", 2},
    {"ERR_BATCH_REFUSED", 2},
    {"ERR_DAEMON_UNAVAILABLE", 5},
    {"ERR_NOT_AUTHORISED", 6},
    {"ERR_SEPARATION", 7},
    {"ERR_RUNTIME_UNSAFE", 7},
    {"ERR_DAEMON_PROTOCOL", 5},
    {"ERR_INVALID_PARAMS", 7},
};

int status_of_code(const char *code) {
  for (size_t index = 0; index < sizeof statuses / sizeof statuses[0]; index++)
    if (strcmp(statuses[index].code, code) == 0) return statuses[index].status;
  return STATUS_FAILED;
}
