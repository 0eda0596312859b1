// Sends a line to a program that sends it back, again and again, and says how long each took, µs.
//   round-trip ROUNDS PROGRAM ARGS...
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include "piped-child.h"

/** Bytes of the line, as many as a small call has; rounds before any counts */
enum { length = 100, warm = 200 };

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
  if (argc < 3) errx(7, "usage: round-trip ROUNDS PROGRAM ARGS...");
  char line[length] = {0};
  struct piped_child child = start_piped(argv + 2);
  for (long round = -warm, rounds = strtol(argv[1], NULL, 10); round < rounds; round++) {
    double began = now_us();
    if (write(child.to, line, length) != length) err(1, "write");
    for (ssize_t had = 0, more; had < length; had += more)
      if ((more = read(child.from, line, (size_t)(length - had))) <= 0) err(1, "read");
    if (round >= 0) printf("%.2f\n", now_us() - began);
  }
  close(child.to);
  waitpid(child.pid, NULL, 0);
  return 0;
}
