// What the attempts of one program share: each runs in a process of its own, and says what it met by returning.
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>

/** Where an attempt writes what it found, for whoever judges; at most TEXT_BYTES of it are kept. */
extern FILE *found;

enum { TEXT_BYTES = 65536, ARGUMENTS = 16, NO_EFFECT = 255 };

/** Seconds after which an attempt is late, and says nothing of what it tried: it counts again from whatever says so. */
enum { PATIENCE_S = 20 };

/** One thing to try. Returns -1 with errno set where it was stopped, anything else where it was not. */
struct attempt {
  const char *name;
  /** Arguments that it takes at least; missing ones are refused before it runs */
  int arguments;
  int (*run)(int count, char **arguments);
};

/** Tables of the files beside this one; each ends with a null name. */
extern const struct attempt file_attempts[], call_attempts[], network_attempts[], door_attempts[], process_attempts[], resource_attempts[], stated_attempts[];

/** Reads an address of either family; returns its length. */
socklen_t parse_address(const char *address, const char *port, struct sockaddr_storage *at);

/** Connects to the path of a socket; an @ at the beginning is an abstract name. Returns the socket, or -1. */
int connect_local(const char *name);

/**
 * Waits until whoever reads the answers has come to what was there before: what was to be seen or done outside has been by then,
 * however slow that is. Returns -1 where nobody reads, with errno 0.
 */
int await_turn(void);

/** Becomes the sandbox tool, without the calls that its arguments begin with. */
_Noreturn void become_tool(char **argv);

/** Becomes the launcher, after a bad start. */
_Noreturn void become_launcher(char **argv);

/** Becomes the first process of a container, without the calls that its arguments begin with. */
_Noreturn void become_first(char **argv);

/** Keeps what the program was started with, before it opens anything. */
void note_descriptors(void);
