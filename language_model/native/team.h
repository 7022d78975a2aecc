/* Helpers that share the work of a step.

   Whoever is free takes the next task, so a helper that comes late, or whose core is busy with something else, is not
   waited for unless it has a task in hand. Helpers spin for a moment between steps, giving way to whoever wants the
   core, and sleep when no step follows. To wake up takes as long as a small step, so who knows of one says so. */

#ifndef TEAM_H
#define TEAM_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { MOST_HELPERS = 7, PATIENCE = 4000 /* turns of waiting, about 200 us */, TURNS_A_YIELD = 32 };

/* Do task number `index`; `who` counts the members, the caller being 0. */
typedef void task(void *work, long index, int who);

static struct {
    /* What is offered: round << 40 | number of tasks << 20 | next task. In one word, so that a task is never taken of
       a round that has ended. */
    _Alignas(64) _Atomic unsigned long offer;
    _Alignas(64) _Atomic long done;
    task *run; /* of this round, with the work: steady as long as a task of it is in hand */
    void *work;
    _Alignas(64) _Atomic int in_step, asleep, helpers, expecting; /* the last: a step will come soon */
    atomic_flag taken;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
} team = {.taken = ATOMIC_FLAG_INIT, .mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static inline int offered(unsigned long offer) { return (offer & 0xfffff) < (offer >> 20 & 0xfffff); }

static inline void wait_a_turn(long turn) {
    if (turn % TURNS_A_YIELD == TURNS_A_YIELD - 1) sched_yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void take_tasks(int who) {
    while (offered(atomic_load_explicit(&team.offer, memory_order_relaxed))) {
        unsigned long mine = atomic_fetch_add_explicit(&team.offer, 1, memory_order_acquire);
        if (!offered(mine)) return;
        team.run(team.work, mine & 0xfffff, who);
        atomic_fetch_add_explicit(&team.done, 1, memory_order_release);
    }
}

static void *help(void *number) {
    int who = (int)(long)number;
    for (;;) {
        long turn = 0;
        while (!offered(atomic_load_explicit(&team.offer, memory_order_relaxed))) {
            if (turn++ < PATIENCE || atomic_load(&team.in_step)) {
                wait_a_turn(turn);
                continue;
            }
            pthread_mutex_lock(&team.mutex);
            atomic_fetch_add(&team.asleep, 1);
            while (!atomic_load(&team.in_step) && !atomic_load(&team.expecting))
                pthread_cond_wait(&team.wake, &team.mutex);
            /* The last to rise ends the call; who sleeps again then waits for another. */
            if (atomic_fetch_sub(&team.asleep, 1) == 1) atomic_store(&team.expecting, 0);
            pthread_mutex_unlock(&team.mutex);
            turn = 0;
        }
        take_tasks(who);
    }
    return 0;
}

/* See to it that there are `helpers` helpers, and say how many there are. */
int hire(int helpers) {
    pthread_mutex_lock(&team.mutex);
    for (int number = atomic_load(&team.helpers) + 1; number <= helpers && number <= MOST_HELPERS; number++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, help, (void *)(long)number)) break;
        pthread_detach(thread);
        atomic_store(&team.helpers, number);
    }
    pthread_mutex_unlock(&team.mutex);
    return atomic_load(&team.helpers);
}

/* A step will come within the moment that helpers spin: whoever sleeps may wake up meanwhile. */
void rouse(void) {
    if (!atomic_load(&team.asleep) || atomic_load(&team.in_step)) return;
    pthread_mutex_lock(&team.mutex);
    if (atomic_load(&team.asleep)) {
        atomic_store(&team.expecting, 1);
        pthread_cond_broadcast(&team.wake);
    }
    pthread_mutex_unlock(&team.mutex);
}

/* Call the helpers for a step. Returns 0 if another step has them: then this one is done alone. */
static int gather(void) {
    if (!atomic_load(&team.helpers) || atomic_flag_test_and_set(&team.taken)) return 0;
    atomic_store(&team.in_step, 1);
    if (atomic_load(&team.asleep)) {
        pthread_mutex_lock(&team.mutex);
        pthread_cond_broadcast(&team.wake);
        pthread_mutex_unlock(&team.mutex);
    }
    return 1;
}

static void disperse(void) {
    atomic_store(&team.in_step, 0);
    atomic_flag_clear(&team.taken);
}

/* Run tasks 0 to `tasks` - 1, which may be done in any order and at once, and return when all are done. */
static void share(int together, long tasks, task *run, void *work) {
    if (!together || tasks == 1) {
        for (long index = 0; index < tasks; index++) run(work, index, 0);
        return;
    }
    team.run = run;
    team.work = work;
    atomic_store_explicit(&team.done, 0, memory_order_relaxed);
    unsigned long round = (atomic_load_explicit(&team.offer, memory_order_relaxed) >> 40) + 1;
    atomic_store_explicit(&team.offer, round << 40 | (unsigned long)tasks << 20, memory_order_release);
    take_tasks(0);
    for (long turn = 0; atomic_load_explicit(&team.done, memory_order_acquire) < tasks; turn++) wait_a_turn(turn);
}

#endif
