#include "service.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace lrpc::storm {
namespace {

using namespace std::chrono_literals;

/// Bounds the wait of a procedure that makes calls itself: circles of calls must come to an end.
constexpr auto kNestedTimeout = 300ms;

/// The Caller of this E-stack's (or poller's) thread.
Caller& own_caller(std::uint64_t seed) {
  thread_local Caller caller(seed ^ static_cast<std::uint64_t>(gettid()));
  return caller;
}

}  // namespace

bool Service::every(std::uint32_t times) { return calls_.fetch_add(1, std::memory_order_relaxed) % times == times - 1; }

void Service::begin(std::uint64_t call) {
  execute(call);
  if (fault_is(Fault::executed_twice) && every(50)) execute(call);
  if (fault_is(Fault::kept_descriptor) && every(200)) (void)dup(STDERR_FILENO);
}

std::int32_t Service::Add(CallContext&, std::uint64_t call, std::int32_t a, std::int32_t b) {
  begin(call);
  if (fault_is(Fault::wrong_answer) && every(50)) return a + b + 1;
  return a + b;
}

void Service::Reverse(CallContext&, std::uint64_t call, std::array<std::byte, 200>& data) {
  begin(call);
  std::ranges::reverse(data);
}

std::int64_t Service::Mirror(CallContext&, std::uint64_t call, Storm::Shape& shape) {
  begin(call);
  std::int64_t sum = 0;
  for (Storm::Corner& corner : shape.corners) {
    sum += corner.x + corner.y;
    corner = {static_cast<std::int32_t>(corner.y), corner.x};
  }
  shape.turn = shape.turn == Storm::Turn::Left ? Storm::Turn::Right : Storm::Turn::Left;
  return sum;
}

String<4000> Service::Join(CallContext&, std::uint64_t call, const String<2000>& first, const String<2000>& second) {
  begin(call);
  return second.str() + first.str();
}

std::uint64_t Service::Sum(CallContext&, std::uint64_t call, std::span<const std::byte> data) {
  begin(call);
  return std::accumulate(data.begin(), data.end(), std::uint64_t{0},
                         [](std::uint64_t sum, std::byte b) { return sum + std::to_integer<std::uint64_t>(b); });
}

std::uint64_t Service::SumInPlace(CallContext& context, std::uint64_t call, std::span<const std::byte> data) {
  return Sum(context, call, data);
}

void Service::Fill(CallContext&, std::uint64_t call, std::uint32_t count, std::uint8_t first, Buffer& data) {
  begin(call);
  if (!data.resize(count)) return;
  for (std::size_t i = 0; i < count; ++i) data.contents()[i] = static_cast<std::byte>(first + i);
}

Result<std::uint32_t, Storm::Refused> Service::Check(CallContext&, std::uint64_t call, std::uint32_t value) {
  begin(call);
  if (value % 2 == 1) return raise(Storm::Refused{.call = call, .reason = 7});
  return value * 2;
}

void Service::Throw(CallContext&, std::uint64_t call) {
  begin(call);
  throw std::runtime_error("thrown on request");
}

std::shared_ptr<Service::Counter> Service::open(std::uint64_t call, std::int64_t start) {
  begin(call);
  return std::make_shared<Counter>(start, handles_);
}

Storm::Counter Service::Open(CallContext& context, std::uint64_t call, std::int64_t start) {
  return context.grant<Storm::Counter>(open(call, start));
}

std::int64_t Service::Advance(CallContext&, std::uint64_t call, Counter& counter, std::int64_t by) {
  begin(call);
  return counter.value += by;
}

std::int64_t Service::Close(CallContext&, std::uint64_t call, const std::shared_ptr<Counter>& counter) {
  begin(call);
  return counter->value;
}

std::uint32_t Service::Nap(CallContext&, std::uint64_t call, std::uint32_t microseconds) {
  begin(call);
  const timespec time{0, static_cast<long>(microseconds) * 1000};
  nanosleep(&time, nullptr);
  return microseconds;
}

void Service::Tell(CallContext&, std::uint64_t call, std::uint64_t) {
  if (!fault_is(Fault::lost_tell)) begin(call);
}

std::shared_ptr<Client> Service::behind(const std::string& name) {
  {
    std::lock_guard lock(mutex_);
    const auto found = behind_.find(name);
    if (found != behind_.end() && !found->second->binding().revoked()) return found->second;
  }
  // Without the lock: the import may wait for a server that dies.
  auto bound = import_or_not(name, {.nameserver = nameserver_, .timeout = 20ms, .call_timeout = kNestedTimeout});
  if (bound == nullptr) return nullptr;
  std::lock_guard lock(mutex_);
  behind_[name] = bound;
  return bound;
}

void Service::let_go() {
  std::map<std::string, std::shared_ptr<Client>> gone;
  std::lock_guard lock(mutex_);
  gone.swap(behind_);
}

Result<std::int32_t, Storm::Refused> Service::Through(CallContext&, std::uint64_t call, const String<32>& name,
                                                      std::uint32_t depth, std::int32_t a, std::int32_t b) {
  begin(call);
  const auto next = behind(name.str());
  if (next == nullptr) return raise(Storm::Refused{.call = call, .reason = 1});
  Caller& caller = own_caller(seed_);
  if (depth > 0) return caller.through(*next, some_name(caller.random()), depth - 1, a, b);
  const auto sum = caller.add(*next, a, b);
  if (!sum) return raise(Storm::Refused{.call = call, .reason = 2});
  return *sum;
}

Result<std::uint32_t, Storm::Refused> Service::Ask(CallContext& context, std::uint64_t call, std::uint32_t question) {
  begin(call);
  const auto caller = Storm::callback(context, {.timeout = kNestedTimeout, .call_timeout = kNestedTimeout});
  if (!caller) return raise(Storm::Refused{.call = call, .reason = 3});
  const MadeCall made("Answer", (*caller)->binding());
  const auto answer = (*caller)->Answer(made.number(), question);
  if (!answer) {
    (void)made.failed(answer.code(), {.may_abort = true}, true);
    return raise(Storm::Refused{.call = call, .reason = 4});
  }
  made.answered(*answer == 3 * question);
  return *answer;
}

}  // namespace lrpc::storm
