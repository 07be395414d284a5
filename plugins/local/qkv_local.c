/* The transport plugin qkv_local: ranks on one machine, without MPI. Each process is started with
 *   QKV_LOCAL_SIZE       number of ranks, 1 to 256
 *   QKV_LOCAL_RANK       number of this one, 0 to size - 1
 *   QKV_LOCAL_DIRECTORY  directory of this user alone (mode 0700), one for each job, in which the ranks meet
 *   QKV_LOCAL_SECONDS    how long the ranks wait for each other at the start; 120 by default
 * and, for tests, with
 *   QKV_LOCAL_DELAY      milliseconds that each message of this rank takes longer
 *   QKV_LOCAL_BANDWIDTH  Mbit/s that this rank sends at most
 *   QKV_LOCAL_FAULT      kill:N or stop:N: this process gets SIGKILL or SIGSTOP when it sends its Nth message
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "local.h"
#include "qkv/transport.h"

int lost_rank = -1;

static char last_error[1024];
static struct peers peers;
static struct {
  struct queue sends, receives;
} queues[MOST_RANKS][CHANNELS];
static struct queue done; /* requests that ended and were not reported */
static int64_t requests;

int set_error(int lost, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
  lost_rank = lost;
  return -1;
}

static const char *name(void) { return "qkv_local"; }
static const char *error(void) { return last_error; }
static int lost(void) { return lost_rank; }

static int open_ranks(int *rank, int *size) {
  if (connect_peers(&peers) != 0) return -1;
  *rank = peers.rank;
  *size = peers.size;
  return 0;
}

static int add(struct queue *queue, const void *bytes, size_t n, int peer, int tag, int64_t begin, int64_t *number) {
  if (n > QKV_MOST_MESSAGE_BYTES)
    return set_error(-1, "a message has %zu bytes; at most %d are accepted", n, QKV_MOST_MESSAGE_BYTES);
  struct request *const r = new_request();
  if (!r) return set_error(-1, "no memory for a request");
  *number = r->number = ++requests;
  r->bytes = (char *)bytes;
  r->size = n;
  r->tag = tag;
  r->begin = begin;
  if (peers.socket[peer][tag == 0 ? WATCH : DATA] >= 0)
    append(queue, r);
  else
    end_request(r); /* one to a lost rank never ends */
  return 0;
}

static int check_peer(int peer) {
  if (peer >= 0 && peer < peers.size && peer != peers.rank) return 0;
  return set_error(-1, "rank %d cannot exchange messages with rank %d of %d", peers.rank, peer, peers.size);
}

static int begin_send(const void *bytes, size_t n, int to, int tag, int64_t *request) {
  if (check_peer(to) != 0) return -1;
  return add(&queues[to][tag == 0 ? WATCH : DATA].sends, bytes, n, to, tag, start_on_link(tag), request);
}

static int begin_receive(void *bytes, size_t n, int from, int tag, int64_t *request) {
  if (check_peer(from) != 0) return -1;
  return add(&queues[from][tag == 0 ? WATCH : DATA].receives, bytes, n, from, tag, 0, request);
}

static void ended(struct request *request) { append(&done, request); }

static void disconnect(int peer) {
  for (int c = 0; c < CHANNELS; c++) {
    if (peers.socket[peer][c] >= 0) close(peers.socket[peer][c]);
    peers.socket[peer][c] = -1;
    drop_all(&queues[peer][c].sends);
    drop_all(&queues[peer][c].receives);
  }
}

static int advance(int peer) {
  for (int c = 0; c < CHANNELS; c++) {
    const int s = peers.socket[peer][c];
    if (s < 0) continue;
    const int received = advance_receives(s, &queues[peer][c].receives, peer, ended);
    if (received != 0 || advance_sends(s, &queues[peer][c].sends, peer, ended) != 0) return disconnect(peer), -1;
  }
  return 0;
}

static int poll_requests(int64_t *numbers, int most) {
  for (int k = 1; k < peers.size; k++)
    if (advance((peers.rank + k) % peers.size) != 0) return -1;
  int count = 0;
  while (count < most && done.first) {
    struct request *const r = done.first;
    done.first = r->next;
    numbers[count++] = r->number;
    end_request(r);
  }
  return count;
}

/* A process that has ended has closed its connections, so the id is not that of another process. */
static int is_connected(int s) {
  char byte;
  return s >= 0 && recv(s, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

static void abort_ranks(int status) {
  for (int peer = 0; peer < peers.size; peer++) {
    struct ucred owner;
    socklen_t size = sizeof owner;
    const int s = peers.socket[peer][WATCH];
    if (is_connected(s) && getsockopt(s, SOL_SOCKET, SO_PEERCRED, &owner, &size) == 0 && owner.pid > 0 &&
        owner.pid != getpid())
      kill(owner.pid, SIGKILL);
  }
  _exit(status);
}

static int close_ranks(void) {
  for (int peer = 0; peer < peers.size; peer++) disconnect(peer);
  drop_all(&done);
  return 0;
}

__attribute__((visibility("default"))) const qkv_transport *qkv_transport_1(void);

const qkv_transport *qkv_transport_1(void) {
  static const qkv_transport functions = {name,  open_ranks, begin_send,  begin_receive, poll_requests,
                                          error, lost,       abort_ranks, close_ranks};
  return &functions;
}
