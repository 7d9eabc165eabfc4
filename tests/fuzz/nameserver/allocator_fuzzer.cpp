// Attacks lrpcd's allocator of processors through the pages that servers share with it: the counters of a hostile
// user's domains say anything; another user is honest. What must hold: at most all processors but one poll. A domain
// that uses no processor time does not keep a poller for long, whatever its page says. The honest user's busy domain
// gets a poller in the end, however many domains the other user has and whatever they say.
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/allocator.h"
#include "input.h"

namespace lrpc::nameserver {
namespace {

using fuzz::Input;
using fuzz::require;

constexpr std::size_t kDomains = 6;  ///< Of the hostile user.
constexpr Allocator::DomainId kHonest = 100;
constexpr uid_t kHostileUser = 1000;
constexpr uid_t kHonestUser = 1001;
constexpr std::chrono::milliseconds kTick{100};

struct Domain {
  bool there = false;
  shim::CountersCopy counters;
  std::chrono::nanoseconds used{0};
  bool works = false;            ///< It uses processor time.
  std::uint32_t idle_ticks = 0;  ///< Successive ticks without processor time.
};

class Attack {
 public:
  explicit Attack(Input& input) : processors_(1 + input.byte() % 6U), clocks_(input.byte() % 8 != 0) {
    policy_.add(kHonest, kHonestUser);
  }

  void step(Input& input) {
    const std::size_t which = input.byte() % kDomains;
    Domain& domain = domains_[which];
    const auto id = static_cast<Allocator::DomainId>(which);
    switch (input.byte() % 8) {
      case 0:
        if (domain.there) policy_.remove(id);
        domain = {};
        return;
      case 1: {
        if (domain.there) return;
        domain.there = true;
        return policy_.add(id, kHostileUser);
      }
      case 2: domain.works = input.byte() % 2 == 0; return;
      case 3: {
        const auto looks = look();
        return policy_.begin(looks);
      }
      case 4: return tick(input.byte() % 16 / 4.0, input.byte() % 16 / 2.0);
      default: return lie(domain.counters, input);
    }
  }

  /// The machine has idle processors, and the honest domain is busy, for some time.
  void settle() {
    for (int i = 0; i < 60; ++i) tick(processors_, 0.5);
    if (processors_ < 2) return;
    require(policy_.ruling(kHonest) == 1U, "a busy domain of an honest user has its poller");
  }

 private:
  static std::uint64_t number(Input& input) {
    const std::uint8_t how = input.byte();
    return how < 0x80 ? how : how < 0xc0 ? input.four() : ~std::uint64_t{0} - input.byte();
  }
  static void lie(shim::CountersCopy& counters, Input& input) {
    switch (input.byte() % 6) {
      case 0: counters.hits += number(input); return;
      case 1: counters.misses += number(input); return;
      case 2: counters.hot_calls += number(input); return;
      case 3: counters.evictions += number(input); return;
      case 4: counters.wants_poller = input.byte() % 4 != 0; return;
      default: counters.polling = input.byte() % 2 == 0; return;
    }
  }

  std::vector<Allocator::Look> look() {
    std::vector<Allocator::Look> looks;
    const auto told = [this](std::chrono::nanoseconds used) { return clocks_ ? std::optional(used) : std::nullopt; };
    for (std::size_t i = 0; i < kDomains; ++i)
      if (const Domain& one = domains_[i]; one.there)
        looks.push_back({static_cast<Allocator::DomainId>(i), one.counters, told(one.used)});
    looks.push_back({kHonest, honest_.counters, told(honest_.used)});
    return looks;
  }

  void tick(double idle, double running) {
    for (Domain& one : domains_) {
      if (one.works) one.used += kTick / 2;
      one.idle_ticks = one.works ? 0 : one.idle_ticks + 1;
    }
    const bool polls = policy_.ruling(kHonest) == 1U;
    honest_.counters.wants_poller = true;
    honest_.counters.polling = polls;
    (polls ? honest_.counters.hits : honest_.counters.hot_calls) += 50'000;
    honest_.used += kTick / 2;
    const auto looks = look();
    policy_.tick(looks, {.processors = processors_, .idle = idle, .running = running});
    check();
  }

  void check() {
    require(policy_.granted() < processors_, "all processors but one poll at most");
    std::uint32_t granted = 0;
    for (std::size_t i = 0; i < kDomains; ++i) {
      const Domain& one = domains_[i];
      const auto ruling = policy_.ruling(static_cast<Allocator::DomainId>(i));
      require(!ruling || (one.there && *ruling <= 1), "a domain that is there has one poller at most");
      const bool has = ruling == 1U;
      granted += has ? 1U : 0U;
      require(!has || !clocks_ || one.idle_ticks <= Allocator::kTicksToLose,
              "who takes no processor time has no poller for long");
    }
    granted += policy_.ruling(kHonest) == 1U ? 1U : 0U;
    require(granted == policy_.granted(), "pollers are counted");
  }

  const unsigned processors_;
  const bool clocks_;  ///< Whether the kernel reports processor time.
  std::array<Domain, kDomains> domains_;
  Domain honest_;
  Allocator policy_;
};

}  // namespace
}  // namespace lrpc::nameserver

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::fuzz::Input input(data, size);
  lrpc::nameserver::Attack attack(input);
  for (int i = 0; i < 512 && input.more(); ++i) attack.step(input);
  attack.settle();
  return 0;
}
