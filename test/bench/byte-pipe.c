// Passes bytes on between its own stdio and a program's: the least that can stand between a host and its server.
//   byte-pipe PROGRAM ARGS...
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include "piped-child.h"

/** Bytes taken at once, as many as a pipe holds */
enum { room = 65536 };

/** Writes all of what can be read now; 0 at the end of either side. */
static int pass(int from, int to) {
  static char bytes[room];
  ssize_t had = read(from, bytes, room);
  for (ssize_t done = 0, wrote; done < had; done += wrote)
    if ((wrote = write(to, bytes + done, (size_t)(had - done))) <= 0) return 0;
  return had > 0;
}

int main(int argc, char **argv) {
  if (argc < 2) errx(7, "usage: byte-pipe PROGRAM ARGS...");
  struct piped_child child = start_piped(argv + 1);
  struct pollfd sides[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = child.from, .events = POLLIN}};
  for (int is_open = 1; is_open;) {
    if (poll(sides, 2, -1) < 0) err(1, "poll");
    if (sides[1].revents != 0) is_open = pass(child.from, STDOUT_FILENO);
    // The end of what comes in is the program's to hear; what it still says is passed on until its own.
    if (sides[0].revents != 0 && !pass(STDIN_FILENO, child.to)) {
      close(child.to);
      sides[0].fd = -1;
    }
  }
  waitpid(child.pid, NULL, 0);
  return 0;
}
