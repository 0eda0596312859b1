// What the parts of sallyport-observe share: who is watched, which calls tell something, and the lines that are told.
#ifndef SALLYPORT_OBSERVE_H
#define SALLYPORT_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { PATH_BYTES = 4096, CALLS_MAX = 1024, WATCHED_MAX = 4096 };

// One thread that is watched.
struct watched {
  pid_t tid;
  pid_t process;
  bool is_server;  // it or who started it has executed a program: everything before is init's own
  uint64_t number, arguments[6];
  bool is_inside;
  bool has_path[2];
  char paths[2][2 * PATH_BYTES];
};

// watched.c
struct watched *watched_find(pid_t tid);
struct watched *watched_add(pid_t tid, pid_t process, bool is_server);
void watched_forget(pid_t tid);
int watched_count(void);
void watched_sample(pid_t init);
void watched_peaks(void);

// calls.c: what a call says where it begins and where it ends.
void call_begins(struct watched *it);
void call_ends(struct watched *it, int64_t result);
void calls_summary(void);

// tell.c: lines of fields between tabs, escaped as JSON strings are.
void tell_begin(const char *what);
void tell_text(const char *text);
void tell_number(int64_t number);
void tell_end(void);
bool link_of(char text[PATH_BYTES], const char *format, pid_t pid, int number);

#endif
