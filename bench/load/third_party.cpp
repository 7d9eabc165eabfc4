#include "third_party.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>

#include "core/program.h"
#include "core/store.h"
#include "core/ticks.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::bench {
namespace {

constexpr std::int64_t kPeriodNs = 1'000'000;
constexpr std::int64_t kWorkNs = 200'000;

std::int64_t now_ns() noexcept { return static_cast<std::int64_t>(clock_ns(CLOCK_MONOTONIC)); }

void compute(std::uint64_t turns) noexcept {
  volatile std::uint64_t turn = 0;
  while (turn < turns) turn = turn + 1;
}

/// How many turns take kWorkNs. The quickest of several tries is the least disturbed one.
std::uint64_t calibrate() noexcept {
  constexpr std::uint64_t kTurns = 100'000;
  std::int64_t best = INT64_MAX;
  for (int i = 0; i < 20; ++i) {
    const std::int64_t begun = now_ns();
    compute(kTurns);
    best = std::min(best, now_ns() - begun);
  }
  return kTurns * static_cast<std::uint64_t>(kWorkNs) / static_cast<std::uint64_t>(std::max<std::int64_t>(best, 1));
}

// ---- a compiler as a load: like a build, one short process after another ----

constexpr int kFunctions = 2;
constexpr auto kLimit = std::chrono::seconds(30);

std::string source_text() {
  std::string text;
  for (int i = 0; i < kFunctions; ++i) {
    text += fmt::format(
        "double f{0}(const double *a, int n) {{\n"
        "  double sum = {0};\n"
        "  for (int i = 0; i < n; ++i) sum += a[i] > sum ? a[i] * {0} : sum / (i + 1);\n"
        "  return sum;\n"
        "}}\n",
        i);
  }
  return text;
}

/// Compiles a small generated C file. No file is created in any directory. Move-only.
class Compiler {
 public:
  /// Errors: system_error.
  static Result<Compiler> create() {
    UniqueFd source(::memfd_create("source", 0));  // without CLOEXEC: the compiler opens it by its number
    if (!source) return system_error("memfd_create", errno);
    const std::string text = source_text();
    if (::write(source.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      return system_error("write", errno);
    return Compiler(std::move(source));
  }
  /// Runs cc(1) on the calling thread's processors and blocks until it ends: some 25 ms. Errors: not_supported if there
  /// is no cc(1) or it fails; call_aborted.
  [[nodiscard]] Status compile() const {
    // The output goes to cc's standard output, so that a compiler that is killed leaves no temporary file behind.
    auto ran =
        run_program({"cc", "-x", "c", "-O2", "-S", "-o", "-", fmt::format("/proc/self/fd/{}", source_.get())}, kLimit);
    if (ran || ran.code() == Errc::call_aborted) return ran ? Status{} : Status(ran.error());
    return Error{Errc::not_supported, "a build: " + ran.error().message()};
  }

 private:
  explicit Compiler(UniqueFd source) noexcept : source_(std::move(source)) {}
  UniqueFd source_;
};

}  // namespace

Result<ThirdParty> ThirdParty::create() {
  auto desk = Shared<Desk>::create();
  if (!desk) return desk.error();
  ThirdParty self(std::move(*desk));
  self.open_book(kBooks);
  return self;
}

Result<ThirdParty> ThirdParty::start(const Seat& seat) {
  auto self = create();
  if (!self) return self;
  const std::uint64_t turns = calibrate();
  const auto work = [&]() -> int { work_periodically(turns, *self->desk_); };
  if (Status up = store(self->process_, Child::spawn("bench-third", seat, work)); !up) return up.error();
  return self;
}

Result<ThirdParty> ThirdParty::start_build(const Seat& seat) {
  auto self = create();
  if (!self) return self;
  const auto compiler = Compiler::create();
  if (!compiler) return compiler.error();
  if (Status tried = compiler->compile(); !tried) return tried.error();
  const auto build = [&] {
    while (note(*self->desk_, now_ns(), [&] { return compiler->compile().has_value(); })) {
    }
    return 1;
  };
  if (Status up = store(self->process_, Child::spawn_leader("bench-build", seat, build)); !up) return up.error();
  return self;
}

template <class Work>
bool ThirdParty::note(Desk& desk, std::int64_t due, Work&& work) {
  const std::size_t book = desk.book.load(std::memory_order_acquire);
  const bool done = work();
  const std::int64_t took = now_ns() - due;
  // A piece of work during which the book changed belongs to neither book.
  if (book < kBooks && book == desk.book.load(std::memory_order_acquire))
    desk.books[book].add(static_cast<std::uint64_t>(took));
  return done;
}

void ThirdParty::work_periodically(std::uint64_t turns, Desk& desk) noexcept {
  for (std::int64_t due = now_ns() + kPeriodNs;; due += kPeriodNs) {
    due = std::max(due, now_ns() - kPeriodNs);  // after a long delay it does not catch up on missed periods
    const timespec at{due / 1'000'000'000, due % 1'000'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
    note(desk, due, [turns] {
      compute(turns);
      return true;
    });
  }
}

}  // namespace lrpc::bench
