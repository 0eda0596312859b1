// Passes bytes on between its own stdio and a program's: the least that can stand between a host and its server.
//   byte-pipe PROGRAM ARGS...
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/** Bytes taken at once, as many as a pipe holds */
enum { room = 65536 };

extern char **environ;

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
  int input[2], output[2];
  pid_t child;
  posix_spawn_file_actions_t actions;
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) err(1, "pipe");
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  if (posix_spawnp(&child, argv[1], &actions, NULL, argv + 1, environ) != 0) errx(1, "%s: not started", argv[1]);
  close(input[0]);
  close(output[1]);
  struct pollfd sides[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = output[0], .events = POLLIN}};
  for (int is_open = 1; is_open;) {
    if (poll(sides, 2, -1) < 0) err(1, "poll");
    if (sides[1].revents != 0) is_open = pass(output[0], STDOUT_FILENO);
    // The end of what comes in is the program's to hear; what it still says is passed on until its own.
    if (sides[0].revents != 0 && !pass(STDIN_FILENO, input[1])) {
      close(input[1]);
      sides[0].fd = -1;
    }
  }
  waitpid(child, NULL, 0);
  return 0;
}
