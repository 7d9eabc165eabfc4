#include "core/child.h"
#include "core/futex.h"
#include "naive.h"

namespace lrpc::bench {
namespace {

struct Words {
  alignas(128) std::atomic<std::uint32_t> request;
  alignas(128) std::atomic<std::uint32_t> reply;
};

/// Sleeps until the word is no longer `old`; returns its new value.
std::uint32_t await_change(const std::atomic<std::uint32_t>& word, std::uint32_t old) noexcept {
  for (;;) {
    if (const std::uint32_t current = word.load(std::memory_order_acquire); current != old) return current;
    futex_wait(word, old);
  }
}

void set_and_wake(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
  word.store(value, std::memory_order_release);
  futex_wake(word);
}

class NaiveFutex final : public RoundTrips<NaiveFutex> {
 public:
  NaiveFutex(Shared<Words> words, Child server) : words_(std::move(words)), server_(std::move(server)) {}

  void round_trip() noexcept {
    set_and_wake(words_->request, last_ + 1);
    last_ = await_change(words_->reply, last_);
  }

 private:
  Shared<Words> words_;
  Child server_;
  std::uint32_t last_ = 0;
};

}  // namespace

Result<std::unique_ptr<Contender>> make_naive_futex(const Seats& seats) {
  auto words = Shared<Words>::create();
  if (!words) return words.error();
  auto server = Child::spawn("naive-futex", seats.server, [&]() -> int {
    for (std::uint32_t seen = 0;;) {
      seen = await_change((*words)->request, seen);
      set_and_wake((*words)->reply, seen);
    }
  });
  if (!server) return server.error();
  return std::unique_ptr<Contender>(new NaiveFutex(std::move(*words), std::move(*server)));
}

}  // namespace lrpc::bench
