// How every step fails: one line that names the step and its object, and the end; nothing goes on half done.
#include "init.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static last_word *told;
static bool is_silent;

void on_death(last_word *word, bool silent) {
  told = word;
  is_silent = silent;
}

// Paths come from outside: a newline or an escape sequence in one must not forge a line of the log.
static size_t append(char *line, size_t at, size_t size, const char *text) {
  for (; *text != '\0' && at + 1 < size; text++)
    line[at++] = (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text;
  return at;
}

void print_failure(const char *step, const char *object, const char *reason) {
  char line[1024];
  size_t at = append(line, 0, sizeof line, "sallyport-init: ");
  at = append(line, at, sizeof line, step);
  at = append(line, at, sizeof line, ": ");
  at = append(line, at, sizeof line, object);
  at = append(line, at, sizeof line, ": ");
  at = append(line, at, sizeof line, reason);
  line[at++] = '\n';
  write_all(STDERR_FILENO, line, at);
}

void die_as(int status, const char *step, const char *object, int error) {
  if (!is_silent) print_failure(step, object, strerror(error));
  if (told != NULL) told(status, step, object, error);
  _exit(status);
}

void die(const char *step, const char *object, int error) { die_as(EXIT_SETUP, step, object, error); }

void refuse(const char *step, const char *object, const char *reason) {
  char both[512];
  if (!is_silent) print_failure(step, object, reason);
  snprintf(both, sizeof both, "%s: %s", object, reason);
  if (told != NULL) told(EXIT_SETUP, step, both, EINVAL);
  _exit(EXIT_SETUP);
}
