// Bytes between stdio and the socket, as they come; neither direction waits for the other.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init.h"
#include "shim.h"

// The host is gone: closing the socket is all that is left to do, and the exit does it.
static _Noreturn void leave_without_host(void) { _exit(EXIT_SIGNAL + SIGPIPE); }

// How much one write to stdout may try. Its flags are the host's as well, so O_NONBLOCK can't be set on it: a
// socket takes a flag for each call, a pipe can be opened anew, and on what remains a write of one page after
// POLLOUT does not wait.
enum { STEP_BYTES = 4096 };

struct out {
  bool is_socket;
  size_t step;
};

static struct out prepare_stdout(void) {
  struct stat status;
  if (fstat(STDOUT_FILENO, &status) != 0) leave_without_host();
  if (S_ISSOCK(status.st_mode)) return (struct out){.is_socket = true, .step = RELAY_BYTES};
  if (!S_ISFIFO(status.st_mode)) return (struct out){.step = STEP_BYTES};
  int own = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (own < 0) return (struct out){.step = STEP_BYTES};
  dup2(own, STDOUT_FILENO);
  close(own);
  return (struct out){.step = RELAY_BYTES};
}

static bool is_empty(const struct buffer *buffer) { return buffer->start == buffer->end; }

static bool is_passing(void) { return errno == EAGAIN || errno == EINTR; }

// False at the end of the stream; a broken one has ended.
static bool fill(struct buffer *buffer, int fd) {
  ssize_t got = read(fd, buffer->bytes, sizeof buffer->bytes);
  if (got < 0) return is_passing();
  buffer->start = 0;
  buffer->end = (size_t)got;
  return got > 0;
}

static void write_stdout(struct buffer *down, struct out out) {
  size_t length = down->end - down->start;
  if (length > out.step) length = out.step;
  const char *at = down->bytes + down->start;
  ssize_t sent = out.is_socket ? send(STDOUT_FILENO, at, length, MSG_DONTWAIT | MSG_NOSIGNAL)
                               : write(STDOUT_FILENO, at, length);
  if (sent >= 0)
    down->start += (size_t)sent;
  else if (!is_passing())
    leave_without_host();
}

// A daemon that takes no more has ended the session; what it still sends is read to its end.
static void write_socket(struct buffer *up, int socket) {
  ssize_t sent = send(socket, up->bytes + up->start, up->end - up->start, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0)
    up->start += (size_t)sent;
  else if (!is_passing())
    up->start = up->end;
}

void relay(int socket, struct buffer *down) {
  static struct buffer up;
  struct out out = prepare_stdout();
  bool is_stdin_open = true, is_socket_open = true;

  while (is_socket_open || !is_empty(down)) {
    bool wants_in = is_socket_open && is_empty(down);
    short socket_events = (short)((wants_in ? POLLIN : 0) | (is_empty(&up) ? 0 : POLLOUT));
    struct pollfd wait[] = {
        {.fd = is_stdin_open && is_empty(&up) ? STDIN_FILENO : -1, .events = POLLIN},
        // A socket that is hung up would wake us for ever while stdout is full, so it is left out then.
        {.fd = socket_events != 0 ? socket : -1, .events = socket_events},
        // Always: a host that closed its end shows here even while there is nothing to write.
        {.fd = STDOUT_FILENO, .events = is_empty(down) ? 0 : POLLOUT},
    };
    if (poll(wait, 3, -1) < 0) continue;
    if ((wait[2].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) leave_without_host();

    if (wait[0].revents != 0 && !fill(&up, STDIN_FILENO)) is_stdin_open = false;
    if (!is_empty(&up)) write_socket(&up, socket);
    // stdin's end goes on once everything before it has.
    if (wait[0].revents != 0 && !is_stdin_open) shutdown(socket, SHUT_WR);

    if (wants_in && (wait[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !fill(down, socket)) {
      // Nobody takes what the host still says.
      is_socket_open = is_stdin_open = false;
      up.start = up.end;
    }
    if (!is_empty(down) && (out.step > STEP_BYTES || (wait[2].revents & POLLOUT) != 0))
      write_stdout(down, out);
  }
}
