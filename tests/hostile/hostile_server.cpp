// The server process of the hostile tests: answers private imports without the server library, then misbehaves as told.
//
//   lrpc-hostile-server SOCKET BEHAVIOUR SEED
//
// One binding at a time: a new import ends the previous binding.
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "garbage.h"
#include "lrpc/detail/shim/call/gates.h"
#include "raw_binding.h"

namespace testing_lrpc {
namespace {

namespace shim = lrpc::shim;
using shim::AStack;
using shim::CallWord;
using shim::Turn;

void die(const char* why) {
  std::fprintf(stderr, "lrpc-hostile-server: %s\n", why);
  _exit(1);
}

/// The server's side of the binding.
struct Victim {
  shim::Region region;
  lrpc::UniqueFd bell;
};

std::uint64_t generation_of(std::uint64_t word) { return word >> CallWord::kGenerationShift; }

/// Returns a call as the protocol demands, with any status and generation.
void return_call(const AStack& astack, std::uint64_t generation, std::uint16_t status) {
  shim::return_to_caller(*astack.head, CallWord::returned(generation, status));
}

/// Follows the protocol far enough that the client reads the results.
void return_garbage(Random& random, Victim& victim, const AStack& astack, std::uint64_t word) {
  scribble_image(random, victim.region, astack);
  return_call(astack, generation_of(word), 0);
}

/// Makes every possible length word in the image exceed every bound.
void return_too_long(Random& random, Victim& victim, const AStack& astack, std::uint64_t word) {
  const auto& placed = victim.region.layout().classes()[astack.astack_class];
  const std::uint32_t length = random.one_in(2) ? 0xffff'ffffU : 4'194'305U | (random.one_in(2) ? 0x8000'0000U : 0U);
  for (std::size_t at = 0; at + 8 <= placed.declared.image_size; at += 8) {
    scribble(astack.image + at, std::uint64_t{length} << 32 | length);
  }
  return_call(astack, generation_of(word), 0);
}

void steal_sleepers(const AStack& astack) {
  static void* elsewhere = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const auto now = static_cast<std::uint32_t>(astack.head->word.load());
  (void)syscall(SYS_futex, &astack.head->word, FUTEX_CMP_REQUEUE, 0, INT_MAX, elsewhere, now);
}

/// What is done to a rung call. `word` is its call word.
using Behaviour = void (*)(Random&, Victim&, const AStack&, std::uint64_t word);

const std::map<std::string, Behaviour> kBehaviours{
    {"silence", [](Random&, Victim&, const AStack&, std::uint64_t) {}},
    {"scribbling",
     [](Random& random, Victim& victim, const AStack& astack, std::uint64_t word) {
       if (random.one_in(4)) scribble_slots(random, victim.region);
       return_garbage(random, victim, astack, word);
       if (random.one_in(8)) scribble_tails(random, victim.region, 100);
     }},
    {"results_that_change",
     [](Random& random, Victim& victim, const AStack& astack, std::uint64_t word) {
       return_garbage(random, victim, astack, word);
       for (int i = 0; i < 20; ++i) scribble_image(random, victim.region, astack);
     }},
    {"results_of_any_bits", return_garbage},
    {"results_too_long", return_too_long},
    {"any_status",
     [](Random& random, Victim& victim, const AStack& astack, std::uint64_t word) {
       scribble_image(random, victim.region, astack);
       const auto status =
           static_cast<std::uint16_t>(random.one_in(2) ? random() : random.below(4) | (random() & 0x8000));
       return_call(astack, generation_of(word), status);
     }},
    {"the_generation_before", [](Random&, Victim&, const AStack& astack,
                                 std::uint64_t word) { return_call(astack, generation_of(word) - 1, 0); }},
    {"the_generation_after", [](Random&, Victim&, const AStack& astack,
                                std::uint64_t word) { return_call(astack, generation_of(word) + 1, 0); }},
    {"a_turn_that_is_none",
     [](Random&, Victim&, const AStack& astack, std::uint64_t word) { astack.head->word.store(word | 3); }},
    {"abandonment",
     [](Random&, Victim&, const AStack& astack, std::uint64_t word) {
       astack.head->word.store((word & ~CallWord::kTurnMask) | static_cast<std::uint64_t>(Turn::abandoned));
     }},
    {"revocation", [](Random&, Victim&, const AStack& astack,
                      std::uint64_t) { shim::revoke_word(*astack.head, shim::Sleeper::caller); }},
    {"holes",
     [](Random& random, Victim& victim, const AStack& astack, std::uint64_t word) {
       punch_hole(random, victim.region);
       return_call(astack, generation_of(word), 0);
       if (random.one_in(4)) punch_hole(random, victim.region);
     }},
    {"flags_that_flicker",
     [](Random&, Victim&, const AStack& astack, std::uint64_t) {
       for (int i = 0; i < 10'000; ++i) astack.head->word.fetch_xor(CallWord::kEStackParked | 0xe0);
       shim::futex_wake(astack.head->word, shim::Sleeper::caller);
     }},
    {"stolen_sleep",
     [](Random&, Victim&, const AStack& astack, std::uint64_t word) {
       const timespec time{0, 5'000'000};
       nanosleep(&time, nullptr);  // by now the caller sleeps
       steal_sleepers(astack);
       return_call(astack, generation_of(word), 0);
     }},
    {"hanging_up", [](Random&, Victim& victim, const AStack&, std::uint64_t) { victim.bell.reset(); }},
    {"death", [](Random&, Victim&, const AStack&, std::uint64_t) { _exit(0); }},
};

/// Sets the hints so that the client uses the gate under test; with the adaptive gate, at random.
void lie_in_the_hints(Random& random, const Victim& victim, shim::Gate gate) {
  for (const AStack& astack : all_astacks(victim.region)) {
    const bool polled = gate == shim::Gate::adaptive ? random.one_in(2) : gate == shim::Gate::exchange;
    astack.head->polled.store(polled ? 1 : 0);
    astack.head->attached.store(gate == shim::Gate::adaptive ? static_cast<std::uint32_t>(random.below(2)) : 1);
  }
}

/// Answers one import. False: there will be no more.
bool accept_binding(int socket, Random& random, Victim& victim) {
  auto received = shim::receive_message(socket);
  if (!received || !received->has_value()) return false;
  const auto* wanted = std::get_if<shim::ImportRequest>(&(*received)->body);
  if (wanted == nullptr) die("not an import request");
  auto fd = shim::create_region(conformance_layout());
  auto bells = shim::make_socket_pair();
  if (!fd || !bells) die("no region or no bell");
  shim::BinderMessage answer = conformance_answer((*received)->request);
  answer.fds.push_back(duplicate(fd->get()));
  answer.fds.push_back(std::move(bells->second));
  auto region = shim::Region::map(*std::move(fd), conformance_layout());
  if (!region) die("cannot map the region");
  victim = {*std::move(region), std::move(bells->first)};
  lie_in_the_hints(random, victim, wanted->gate);
  return static_cast<bool>(shim::send_message(socket, answer));
}

[[noreturn]] void run(int socket, Behaviour behave, std::uint64_t seed) {
  Random random(seed);
  Victim victim;
  for (;;) {
    pollfd entry{socket, POLLIN, 0};
    if (poll(&entry, 1, 0) > 0 && !accept_binding(socket, random, victim)) socket = -1;  // poll(2) ignores it then
    if (victim.region.mapped()) {
      for (const AStack& astack : all_astacks(victim.region)) {
        const std::uint64_t word = astack.head->word.load();
        if ((word & CallWord::kTurnMask) == static_cast<std::uint64_t>(Turn::called))
          behave(random, victim, astack, word);
      }
    }
    sched_yield();
  }
}

}  // namespace
}  // namespace testing_lrpc

int main(int argc, char** argv) {
  using namespace testing_lrpc;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 4) die("SOCKET BEHAVIOUR SEED, please");
  const auto behaviour = kBehaviours.find(argv[2]);
  if (behaviour == kBehaviours.end()) die("no such behaviour");
  std::puts("ready");
  std::fflush(stdout);
  run(std::atoi(argv[1]), behaviour->second, std::strtoull(argv[3], nullptr, 0));
}
