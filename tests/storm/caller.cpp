#include "caller.h"

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <thread>

#include "lrpc/client.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "made_call.h"

namespace lrpc::storm {

std::string mortal_name(std::uint32_t number) { return "mortal-" + std::to_string(number); }

std::string some_name(Random& random) {
  return random.chance(20) ? std::string(kSurvivorName) : mortal_name(random.below(kNames));
}

std::shared_ptr<Client> import_or_not(const std::string& name, const ImportOptions& options) {
  const std::uint32_t round = ledger().round.load();
  auto imported = [&] {
    const InCall waiting("import", 0, nullptr);
    return Client::import(name, options);
  }();
  if (imported) return std::make_shared<Client>(*std::move(imported));
  switch (imported.code()) {
    case Errc::name_unknown:
    case Errc::limit_reached:
      // In a round without daemon deaths, the survivor is exported, and there is room.
      if (name == kSurvivorName && round % 2 == 0 && round == ledger().round.load())
        complain("import of %s, which is there: %s", name.c_str(), imported.error().message().c_str());
      break;
    case Errc::timed_out:
    case Errc::peer_gone:
    case Errc::no_nameserver: break;
    default: complain("import of %s: %s", name.c_str(), imported.error().message().c_str());
  }
  return nullptr;
}

std::string private_socket(const std::string& nameserver, const std::string& name) { return nameserver + "." + name; }

std::shared_ptr<Client> import_privately_or_not(const std::string& name, const ImportOptions& options) {
  const bool survivor = name == kSurvivorName;
  const InCall waiting("private import", 0, nullptr);
  auto socket = shim::connect_nameserver(private_socket(options.nameserver, name), false);
  Error why = socket ? Error() : socket.error();
  if (socket) {
    auto imported = Client::import_over(std::move(*socket), options);
    if (imported) {
      ledger().private_bindings.fetch_add(1, std::memory_order_relaxed);
      return std::make_shared<Client>(*std::move(imported));
    }
    why = imported.error();
  }
  // Nobody listens there, or not any more, or the server is stopped.
  const bool fits = why.code == Errc::no_nameserver || why.code == Errc::peer_gone || why.code == Errc::timed_out;
  if (survivor) complain("private import of %s, which is there: %s", name.c_str(), why.message().c_str());
  if (!survivor && !fits) complain("private import of %s: %s", name.c_str(), why.message().c_str());
  return nullptr;
}

bool Caller::call(Client& client, const Terms& terms) {
  if (!terms.sealed && random_.chance(3)) return cancelled(client, terms);
  const std::uint32_t kind = random_.below(100);
  if (kind < 50) return simple(client, terms);
  if (kind < 65) return large(client, terms);
  if (kind < 80 || terms.sealed) return Calls::handles(client, terms, random_, 4);
  return uncommon(client, terms);
}

bool Caller::simple(Client& client, const Terms& terms) {
  const auto a = static_cast<std::int32_t>(random_.below(1'000'000));
  const auto b = static_cast<std::int32_t>(random_.below(1'000'000));
  switch (random_.below(8)) {
    case 0: {
      std::array<std::byte, 200> data{};
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * static_cast<std::size_t>(a));
      auto expected = data;
      std::ranges::reverse(expected);
      const MadeCall made("Reverse", client.binding());
      const auto done = client.Reverse(made.number(), data);
      return made.judge(done, terms, data == expected);
    }
    case 1: {
      Storm::Shape shape{};
      for (auto& corner : shape.corners) corner = {a, b};
      shape.turn = Storm::Turn::Left;
      shape.name = "storm";
      const MadeCall made("Mirror", client.binding());
      const auto sum = client.Mirror(made.number(), shape);
      const bool mirrored = shape.corners[2].x == b && shape.corners[2].y == a && shape.turn == Storm::Turn::Right &&
                            shape.name == "storm";
      return made.judge(sum, terms, sum && *sum == 3 * (std::int64_t{a} + b) && mirrored);
    }
    case 2: return Calls::check(client, terms, random_);
    case 3: {
      const MadeCall made("Throw", client.binding());
      const auto thrown = client.Throw(made.number());
      if (thrown.code() == Errc::exception_escaped) return made.answered(true);
      return thrown ? made.answered(false) : made.failed(thrown.code(), terms);
    }
    default: return Calls::add(client, terms, random_);
  }
}

bool Caller::large(Client& client, const Terms& terms) {
  const std::uint32_t kind = random_.below(4);
  if (kind == 0) {
    const std::string first(random_.below(2001), 'a');
    const std::string second(random_.below(2001), 'b');
    const MadeCall made("Join", client.binding());
    const auto both = client.Join(made.number(), first, second);
    return made.judge(both, terms, both && both->view() == second + first);
  }
  const std::uint32_t size = random_.chance(70) ? random_.below(600) : random_.below(100'001);
  if (kind == 1) return Calls::fill(client, terms, random_, size, 100'000);
  return Calls::sum(client, terms, random_, size, kind == 3);
}

bool Caller::uncommon(Client& client, const Terms& terms) {
  switch (random_.below(6)) {
    case 0: return Calls::nap(client, terms, random_.chance(80) ? random_.below(300) : random_.below(12'000));
    case 1: {
      const MadeCall made("Tell", client.binding());
      const auto told = client.Tell(made.number(), random_.seed());
      if (!told) return made.failed(told.code(), terms);
      made.fate(terms.lasting ? Fate::told : Fate::unknown);
      return true;
    }
    case 2: {
      if (!terms.callbacks) return simple(client, terms);
      const std::uint32_t question = random_.below(1'000'000);
      const MadeCall made("Ask", client.binding());
      const auto answer = client.Ask(made.number(), question);
      if (answer.raised<Storm::Refused>() != nullptr) return made.answered(true);
      return answer ? made.answered(*answer == 3 * question) : made.failed(answer.code(), terms, true);
    }
    case 3: {
      const auto a = static_cast<std::int32_t>(random_.below(1000));
      const auto b = static_cast<std::int32_t>(random_.below(1000));
      const std::string name = some_name(random_);
      const std::uint32_t depth = random_.below(3);
      const MadeCall made("Through", client.binding());
      const auto sum = client.Through(made.number(), name, depth, a, b);
      if (sum.raised<Storm::Refused>() != nullptr) return made.answered(true);
      return sum ? made.answered(*sum == a + b) : made.failed(sum.code(), terms, true);
    }
    default: return call_several(client, terms);
  }
}

namespace {

/// An Add that is started, and finished later.
class StartedAdd {
 public:
  void start(const char* what, Client& client, std::int32_t a, std::int32_t b) {
    made_.emplace(what, client.binding());
    expected_ = a + b;
    pending_.emplace(client.start().Add(made_->number(), a, b));
    made_->under_way();
  }
  bool finish(Client& client, const Terms& terms) {
    made_->awaited(client.binding());
    const auto sum = pending_->finish();
    const bool good = made_->judge(sum, terms, sum && *sum == expected_);
    made_->under_way();
    return good;
  }
  void abandon() {
    pending_.reset();
    made_->fate(Fate::unknown);
  }
  [[nodiscard]] Pending<Storm::Add_outcome>& pending() { return *pending_; }

 private:
  std::int32_t expected_ = 0;
  std::optional<MadeCall> made_;
  std::optional<Pending<Storm::Add_outcome>> pending_;  ///< Destroyed before made_.
};

}  // namespace

bool Caller::burst(Client& client, const Terms& terms, std::uint32_t count) {
  // This thread holds A-stacks while it waits for another one. If the server grants no more, only the scope's time
  // limit ends the wait.
  const CallScope scope(std::chrono::seconds(3));
  Terms in_scope = terms;
  in_scope.may_abort = true;
  std::vector<StartedAdd> all(count);
  for (StartedAdd& one : all) one.start("Add in a burst", client, 40, 2);
  bool good = true;
  for (StartedAdd& one : all) good = one.finish(client, in_scope) && good;
  return good;
}

bool Caller::cancelled(Client& client, const Terms& terms) {
  const Cancellation cancellation;
  std::thread canceller;
  try {
    canceller = std::thread([cancellation, after = random_.below(3000)] {
      std::this_thread::sleep_for(std::chrono::microseconds(after));
      cancellation.cancel();
    });
  } catch (const std::system_error&) {  // EAGAIN: the machine has no thread to spare, and nobody cancels the calls
  }
  Terms in_scope = terms;
  in_scope.may_cancel = true;
  in_scope.lasting = false;  // a cancelled one-way call need not be executed
  bool good = true;
  {
    const CallScope scope(cancellation);
    for (std::uint32_t i = random_.between(1, 8); good && i > 0; --i) {
      // No handles: if its opening is abandoned, a handle stays open as long as the binding.
      const std::uint32_t kind = random_.below(4);
      good = kind == 0 ? simple(client, in_scope) : kind == 1 ? large(client, in_scope) : uncommon(client, in_scope);
    }
  }
  if (canceller.joinable()) canceller.join();
  return good;
}

bool Caller::call_several(Client& client, const Terms& terms) {
  if (terms.grows && random_.chance(60)) return burst(client, terms, random_.between(5, 20));
  // At most as many as there are A-stacks: one more call would wait for an A-stack that only this thread gives back.
  std::vector<StartedAdd> all(terms.shared ? 1 : random_.between(1, 3));
  auto queue = random_.chance(50) ? CompletionQueue::create() : Result<std::unique_ptr<CompletionQueue>>(nullptr);
  std::uint32_t told = 0;
  for (StartedAdd& one : all) {
    one.start("started Add", client, static_cast<std::int32_t>(random_.below(1000)), 5);
    if (queue && *queue) (void)(*queue)->watch(one.pending(), [&told] { ++told; });
  }
  if (queue && *queue) {
    const InCall waiting("CompletionQueue::wait", 0, &lrpc::detail::StubAccess::object(client.binding()));
    (void)(*queue)->wait(std::chrono::milliseconds(20));
  }
  bool good = true;
  for (StartedAdd& one : all) {
    if (random_.chance(15)) {
      one.abandon();
    } else {
      good = one.finish(client, terms) && good;
    }
  }
  all.clear();  // before the queue
  return good;
}

Result<std::int32_t> Caller::add(Client& client, std::int32_t a, std::int32_t b) {
  const MadeCall made("nested Add", client.binding());
  auto sum = client.Add(made.number(), a, b);
  if (!sum) {
    (void)made.failed(sum.code(), {.may_abort = true}, true);
    return sum.error();
  }
  made.answered(*sum == a + b);
  return sum;
}

Result<std::int32_t, Storm::Refused> Caller::through(Client& client, const std::string& name, std::uint32_t depth,
                                                     std::int32_t a, std::int32_t b) {
  const MadeCall made("nested Through", client.binding());
  auto sum = client.Through(made.number(), name, depth, a, b);
  if (sum.raised<Storm::Refused>() != nullptr) {
    made.answered(true);
  } else if (!sum) {
    (void)made.failed(sum.code(), {.may_abort = true}, true);
  } else {
    made.answered(*sum == a + b);
  }
  return sum;
}

}  // namespace lrpc::storm
