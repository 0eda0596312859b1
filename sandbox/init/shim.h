// The parts of the stdio shim.
#ifndef SALLYPORT_SHIM_H
#define SALLYPORT_SHIM_H

#include <stdbool.h>
#include <stddef.h>

// Exit statuses of the command line, as far as the shim gives them; a table maps the error codes to them.
enum { STATUS_FAILED = 1, STATUS_UNAVAILABLE = 5, STATUS_NOT_AUTHORISED = 6, STATUS_USAGE = 7 };

enum { RELAY_BYTES = 64 << 10, NAME_MAX_BYTES = 128 };

// What was read and not yet passed on.
struct buffer {
  size_t start, end;
  char bytes[RELAY_BYTES];
};

// shim.c: one line on stderr, `sallyport: …`, and the end with `status`.
_Noreturn void give_up(int status, const char *what, const char *detail);
// address.c: the path of host.sock; gives up where none can be told.
const char *socket_path(void);
// dial.c: a connected socket; gives up where nobody answers.
int dial(const char *path, bool may_start);
// autostart.c: starts `serve --background`; returns its pid, or -1.
int start_daemon(void);
// ask.c: one request, one line of answer. Bytes after the line stay in `buffer`. `params` is JSON: names in it hold letters that
// JSON never escapes, as the callers have checked; with the method it is shorter than 400 bytes.
size_t ask(int socket, const char *method, const char *params, struct buffer *buffer, int deadline_ms);
// relay.c: bytes both ways until the socket ends.
void relay(int socket, struct buffer *down);
// statuses.c
int status_of_code(const char *code);

#endif
