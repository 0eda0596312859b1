// The parts of the stdio shim.
#ifndef SALLYPORT_SHIM_H
#define SALLYPORT_SHIM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

// Exit statuses of the command line, as far as the shim gives them; a table maps the error codes to them.
enum { STATUS_FAILED = 1, STATUS_UNAVAILABLE = 5, STATUS_NOT_AUTHORISED = 6, STATUS_USAGE = 7 };

enum { RELAY_BYTES = 64 << 10, NAME_MAX_BYTES = 128 };

// Of a path each byte may be escaped to six.
enum { PROJECT_MAX_BYTES = 6 * PATH_MAX + 32, PARAMS_MAX_BYTES = NAME_MAX_BYTES + 64 + PROJECT_MAX_BYTES };

// What was read and not yet passed on.
struct buffer {
  size_t start, end;
  char bytes[RELAY_BYTES];
};

// shim.c: one line on stderr, `sallyport: …`, and the end with `status`.
_Noreturn void give_up(int status, const char *what, const char *detail);
// address.c: the path of host.sock; gives up where none can be told.
const char *socket_path(void);
// dial.c: a connected socket, or -1 with errno.
int connect_to(const char *path);
// dial.c: a connected socket; gives up where nobody answers.
int dial(const char *path, bool may_start);
// autostart.c: starts `serve --background`; returns its pid, or -1.
int start_daemon(void);
// project.c: `,"project":"…"` for a folder, made absolute; nothing for NULL.
const char *project_member(const char *folder);
// ask.c: one request, one line of answer, of which `line` is the length; false where the connection ended before it was whole.
// Bytes after the line stay in `buffer`. `params` is JSON of less than PARAMS_MAX_BYTES: names in it hold letters that JSON never
// escapes, as the callers have checked.
bool ask(int socket, const char *method, const char *params, struct buffer *buffer, int deadline_ms, size_t *line);
// relay.c: bytes both ways until the socket ends.
void relay(int socket, struct buffer *down);
// statuses.c
int status_of_code(const char *code);

#endif
