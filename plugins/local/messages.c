/* Messages on a connection: a header, then the bytes. A message is read when its receive was requested; it must have
 * the tag and the size of that request. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "local.h"

enum { REQUESTS = 1024 }; /* that are added to the list at a time */

static struct request *unused;

void end_request(struct request *request) {
  request->next = unused;
  unused = request;
}

struct request *new_request(void) {
  if (!unused) {
    struct request *const more = calloc(REQUESTS, sizeof *more);
    for (int i = 0; more && i < REQUESTS; i++) end_request(&more[i]);
  }
  struct request *const request = unused;
  if (!request) return NULL;
  unused = request->next;
  *request = (struct request){0};
  return request;
}

void append(struct queue *queue, struct request *request) {
  request->next = NULL;
  if (queue->first)
    queue->last->next = request;
  else
    queue->first = request;
  queue->last = request;
}

static struct request *take_first(struct queue *queue) {
  struct request *const request = queue->first;
  queue->first = request->next;
  queue->moved = 0;
  return request;
}

void drop_all(struct queue *queue) {
  while (queue->first) end_request(take_first(queue));
}

enum { MOVED_ALL, WAIT, FAILED };

static int lost(int peer) { return set_error(peer, "rank %d: the connection was lost", peer); }

/* Sends or receives n bytes, of which *moved are done. */
static int move(int socket, char *bytes, size_t n, size_t *moved, int sending) {
  while (*moved < n) {
    const size_t part = sending ? room_on_link(n - *moved) : n - *moved;
    if (part == 0) return WAIT;
    const ssize_t count = sending ? send(socket, bytes + *moved, part, MSG_NOSIGNAL | MSG_DONTWAIT)
                                  : recv(socket, bytes + *moved, part, MSG_DONTWAIT);
    if (count > 0) {
      *moved += (size_t)count;
      if (sending) use_link((size_t)count);
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else {
      return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) ? WAIT : FAILED;
    }
  }
  return MOVED_ALL;
}

int advance_sends(int socket, struct queue *queue, int peer, ended_function ended) {
  while (queue->first) {
    struct request *const r = queue->first;
    if (r->begin > 0 && microseconds() < r->begin) return 0;
    queue->header = (struct header){MAGIC, r->tag, r->size};
    int state = move(socket, (char *)&queue->header, sizeof queue->header, &queue->moved, 1);
    if (state == MOVED_ALL) state = move(socket, r->bytes, r->size, &r->moved, 1);
    if (state != MOVED_ALL) return state == WAIT ? 0 : lost(peer);
    ended(take_first(queue));
  }
  return 0;
}

static int check_header(const struct header *h, const struct request *r, int peer) {
  if (h->magic == MAGIC && h->tag == r->tag && h->size == r->size) return 0;
  return set_error(peer, "rank %d sent a message of %llu bytes with tag %d; expected %zu bytes with tag %d", peer,
                   (unsigned long long)h->size, h->tag, r->size, r->tag);
}

int advance_receives(int socket, struct queue *queue, int peer, ended_function ended) {
  while (queue->first) {
    struct request *const r = queue->first;
    int state = move(socket, (char *)&queue->header, sizeof queue->header, &queue->moved, 0);
    if (state == MOVED_ALL) {
      if (check_header(&queue->header, r, peer) != 0) return -1;
      state = move(socket, r->bytes, r->size, &r->moved, 0);
    }
    if (state != MOVED_ALL) return state == WAIT ? 0 : lost(peer);
    ended(take_first(queue));
  }
  return 0;
}
