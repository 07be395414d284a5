/* Connects the ranks. Each listens at DIRECTORY/RANK.socket, connects to the ranks below it and accepts those above. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "local.h"

struct greeting {
  uint32_t magic;
  int32_t rank, size, channel;
};

static int64_t milliseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * (int64_t)1000 + t.tv_nsec / 1000000;
}

int read_number(const char *name, int least, int most, int otherwise, int *value) {
  const char *const text = getenv(name);
  char *end = NULL;
  if (!text && otherwise >= least) return *value = otherwise, 0;
  const long number = text ? strtol(text, &end, 10) : -1;
  if (!text || !*text || *end || number < least || number > most)
    return set_error(-1, "%s must be between %d and %d (is \"%.40s\")", name, least, most, text ? text : "");
  return *value = (int)number, 0;
}

/* The directory must belong to this user alone, so that no other user can connect. */
static int read_directory(const char **directory) {
  struct stat status;
  *directory = getenv("QKV_LOCAL_DIRECTORY");
  if (!*directory || !**directory) return set_error(-1, "QKV_LOCAL_DIRECTORY must name a directory of the job");
  if (lstat(*directory, &status) != 0)
    return set_error(-1, "QKV_LOCAL_DIRECTORY %.200s: %s", *directory, strerror(errno));
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0)
    return set_error(-1, "QKV_LOCAL_DIRECTORY %.200s must be a directory of this user with mode 0700", *directory);
  return 0;
}

static int set_address(struct sockaddr_un *address, const char *directory, int rank) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  const int n = snprintf(address->sun_path, sizeof address->sun_path, "%s/%d.socket", directory, rank);
  if (n < 0 || (size_t)n >= sizeof address->sun_path)
    return set_error(-1, "QKV_LOCAL_DIRECTORY %.200s: the name must have at most %zu bytes", directory,
                     sizeof address->sun_path - 16);
  return 0;
}

static int try_connect(const struct sockaddr_un *address) {
  const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (s < 0 || connect(s, (const struct sockaddr *)address, sizeof *address) == 0) return s;
  const int reason = errno;
  close(s);
  errno = reason;
  return -1;
}

/* Replaces the socket that a killed process left. */
static int listen_at(const struct sockaddr_un *address, int size, int *listener) {
  const int other = try_connect(address);
  if (other >= 0) {
    close(other);
    return set_error(-1, "%s: is used by another process; each rank of a job needs its own QKV_LOCAL_RANK",
                     address->sun_path);
  }
  if (errno == ECONNREFUSED) unlink(address->sun_path);
  *listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (*listener < 0 || bind(*listener, (const struct sockaddr *)address, sizeof *address) != 0 ||
      listen(*listener, CHANNELS * size) != 0)
    return set_error(-1, "%s: %s", address->sun_path, strerror(errno));
  return 0;
}

static int connect_to(struct peers *p, const char *directory, int peer, int channel, int64_t deadline) {
  struct sockaddr_un address;
  if (set_address(&address, directory, peer) != 0) return -1;
  int s;
  while ((s = try_connect(&address)) < 0) {
    if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
      return set_error(-1, "%s: %s", address.sun_path, strerror(errno));
    if (milliseconds() > deadline) return set_error(peer, "rank %d was not started in time", peer);
    poll(NULL, 0, 5);
  }
  p->socket[peer][channel] = s;
  const struct greeting greeting = {MAGIC, p->rank, p->size, channel};
  if (send(s, &greeting, sizeof greeting, MSG_NOSIGNAL) != (ssize_t)sizeof greeting)
    return set_error(peer, "rank %d: %s", peer, strerror(errno));
  return 0;
}

static int check_greeting(const struct peers *p, const struct greeting *g) {
  if (g->magic != MAGIC || g->rank <= p->rank || g->rank >= MOST_RANKS || g->channel < 0 || g->channel >= CHANNELS)
    return set_error(-1, "a process that is not a rank of this job connected to rank %d", p->rank);
  if (g->size != p->size || g->rank >= p->size)
    return set_error(-1, "QKV_LOCAL_SIZE is %d for rank %d and %d for rank %d; must be the same", p->size, p->rank,
                     g->size, g->rank);
  if (p->socket[g->rank][g->channel] >= 0) return set_error(-1, "there are two processes of rank %d", g->rank);
  return 0;
}

/* Returns whether the socket became readable before the deadline. */
static int wait_for(int s, int64_t deadline) {
  struct pollfd wait = {s, POLLIN, 0};
  for (;;) {
    const int64_t left = deadline - milliseconds();
    const int ready = poll(&wait, 1, left < 0 ? 0 : (int)left);
    if (ready > 0 || (ready == 0 && left <= 0)) return ready > 0;
    if (ready < 0 && errno != EINTR) return 0;
  }
}

/* A process that only looks whether this rank exists connects and sends nothing. */
static int accept_one(struct peers *p, int listener, int64_t deadline, int *missing) {
  struct greeting greeting;
  if (!wait_for(listener, deadline))
    return set_error(-1, "%d of the ranks above %d were not started in time", (*missing + 1) / CHANNELS, p->rank);
  const int s = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (s < 0) return errno == EINTR ? 0 : set_error(-1, "rank %d: %s", p->rank, strerror(errno));
  const ssize_t n = wait_for(s, deadline) ? recv(s, &greeting, sizeof greeting, MSG_WAITALL) : -1;
  if (n != (ssize_t)sizeof greeting || check_greeting(p, &greeting) != 0) {
    close(s);
    if (n == 0) return 0;
    return n == (ssize_t)sizeof greeting ? -1 : set_error(-1, "a rank above %d ended before it was connected", p->rank);
  }
  p->socket[greeting.rank][greeting.channel] = s;
  --*missing;
  return 0;
}

static int connect_all(struct peers *p, const char *directory, int listener, int64_t deadline) {
  for (int peer = 0; peer < p->rank; peer++)
    for (int channel = 0; channel < CHANNELS; channel++)
      if (connect_to(p, directory, peer, channel, deadline) != 0) return -1;
  for (int missing = CHANNELS * (p->size - 1 - p->rank); missing > 0;)
    if (accept_one(p, listener, deadline, &missing) != 0) return -1;
  return 0;
}

int connect_peers(struct peers *p) {
  const char *directory;
  struct sockaddr_un address;
  int seconds, listener = -1;
  memset(p->socket, -1, sizeof p->socket);
  if (read_number("QKV_LOCAL_SIZE", 1, MOST_RANKS, -1, &p->size) != 0 ||
      read_number("QKV_LOCAL_RANK", 0, p->size - 1, -1, &p->rank) != 0 ||
      read_number("QKV_LOCAL_SECONDS", 1, 86400, 120, &seconds) != 0 || read_directory(&directory) != 0 ||
      read_link() != 0 ||
      set_address(&address, directory, p->rank) != 0)
    return -1;
  int result = listen_at(&address, p->size, &listener);
  if (result == 0) {
    result = connect_all(p, directory, listener, milliseconds() + seconds * (int64_t)1000);
    unlink(address.sun_path);
  }
  if (listener >= 0) close(listener);
  return result;
}
