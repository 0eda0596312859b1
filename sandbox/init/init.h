// What the personalities of sallyport-init share: descriptors, exit codes, and one way to fail.
#ifndef SALLYPORT_INIT_H
#define SALLYPORT_INIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Descriptors that the supervisor hands over; every other one is closed before anything else is done.
enum {
  FD_CONTROL = 3,
  FD_SERVER_STDIN = 4,
  FD_SERVER_STDOUT = 5,
  FD_SERVER_STDERR = 6,
  FD_FIRST_UNLISTED = 7,
  // From PID 1 to who covers /proc, and gone before it reports ready; where covers were ordered, and there only.
  FD_COVERS = 7,
};

enum { EXIT_SETUP = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127, EXIT_SIGNAL = 128 };

// main.c: the personalities.
int outer_main(void);
int init_main(void);
int container_main(void);
int stdio_main(int argc, char **argv);
int peer_main(void);
int nowhere_main(void);
int tied_main(char **argv);
int kept_main(char **argv);
int guard_main(int argc, char **argv);

// die.c: one line on stderr, the last word where one is set, and the end.
_Noreturn void die(const char *step, const char *object, int error);
_Noreturn void die_as(int status, const char *step, const char *object, int error);
_Noreturn void refuse(const char *step, const char *object, const char *reason);
// Told of a death before the process ends; `object` of a refusal carries its reason.
typedef void last_word(int status, const char *step, const char *object, int error);
// From here on a death is told to `word`; `silent` keeps it off stderr, which by then may be the server's.
void on_death(last_word *word, bool silent);
void print_failure(const char *step, const char *object, const char *reason);

// descriptors.c
void close_from(int first);
void set_cloexec(int first, int last);
bool write_all(int fd, const void *bytes, size_t length);

// clock.c: monotonic, so that a set clock moves no deadline.
int64_t now_ms(void);

// memory.c
void let_go_of_code(void);

// signals.c
void block_all_signals(void);
void reset_signals(void);

// capabilities.c
void drop_capability_sets(void);
void drop_all_capabilities(void);
void expect_no_capabilities(void);
void forbid_new_privileges(void);

#endif
