// One request of the control protocol and the line that answers it.
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "init.h"
#include "shim.h"

bool ask(int socket, const char *method, const char *params, struct buffer *buffer, int deadline_ms,
         size_t *line) {
  static char request[PARAMS_MAX_BYTES + 128];
  int length = snprintf(request, sizeof request,
                        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}\n", method, params);
  if (send(socket, request, (size_t)length, MSG_NOSIGNAL) != length) return false;

  for (int64_t deadline = now_ms() + deadline_ms;;) {
    char *newline = memchr(buffer->bytes, '\n', buffer->end);
    if (newline != NULL) {
      *line = (size_t)(newline - buffer->bytes);
      return true;
    }
    if (buffer->end == sizeof buffer->bytes)
      give_up(STATUS_FAILED, "the daemon's answer is longer than 64 KiB", "");
    int64_t left = deadline - now_ms();
    // The host's end of stdout is watched too: without it nobody waits for the answer.
    struct pollfd wait[] = {{.fd = socket, .events = POLLIN}, {.fd = STDOUT_FILENO, .events = 0}};
    int ready = left <= 0 ? 0 : poll(wait, 2, (int)left);
    if (ready == 0) give_up(STATUS_UNAVAILABLE, "the daemon did not answer in time: ", method);
    if ((wait[1].revents & (POLLERR | POLLHUP)) != 0) _exit(EXIT_SIGNAL + 13);
    if ((wait[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    ssize_t got = recv(socket, buffer->bytes + buffer->end, sizeof buffer->bytes - buffer->end, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    buffer->end += (size_t)got;
  }
}
