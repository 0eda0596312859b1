// Sends a line to a program that sends it back, again and again, and says how long each took, µs.
//   round-trip ROUNDS PROGRAM ARGS...
#include <err.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/** Bytes of the line, as many as a small call has; rounds before any counts */
enum { length = 100, warm = 200 };

extern char **environ;

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
  if (argc < 3) errx(7, "usage: round-trip ROUNDS PROGRAM ARGS...");
  int input[2], output[2];
  char line[length] = {0};
  pid_t child;
  posix_spawn_file_actions_t actions;
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) err(1, "pipe");
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  if (posix_spawnp(&child, argv[2], &actions, NULL, argv + 2, environ) != 0) errx(1, "%s: not started", argv[2]);
  close(input[0]);
  close(output[1]);
  for (long round = -warm, rounds = strtol(argv[1], NULL, 10); round < rounds; round++) {
    double began = now_us();
    if (write(input[1], line, length) != length) err(1, "write");
    for (ssize_t had = 0, more; had < length; had += more)
      if ((more = read(output[0], line, (size_t)(length - had))) <= 0) err(1, "read");
    if (round >= 0) printf("%.2f\n", now_us() - began);
  }
  close(input[1]);
  waitpid(child, NULL, 0);
  return 0;
}
