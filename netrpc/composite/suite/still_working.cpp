// STILL_WORKING: a server says which requests it works on. If it does not, it has failed (§3.5: what the paper's ACK
// says of slow servers).
#include <algorithm>
#include <vector>

#include "netrpc/composite/suite/suite.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc::composite {

namespace {

constexpr EventName<> kTick{"Tick"};

class StillWorking final : public MicroProtocol {
 public:
  explicit StillWorking(MicroParts& parts)
      : parts_(parts),
        interval_(parts.options.duration("interval", std::chrono::seconds(1))),
        silences_(parts.options.number("silences", 4)),
        call_(parts.attribute<CallId>("call", Visibility::of_owner, InHeader::yes)),
        tick_(parts.own(kTick, [this] { ticked(); })),
        silent_(parts.exported(kServerSilent)) {
    parts_.later([this](MicroParts& all) { handle(all); });
  }

 private:
  /// A request whose reply has not come.
  struct Watched {
    CallId call;
    const Session* session;  ///< Only compared.
    std::uint64_t silences = 0;
  };

  void handle(MicroParts& all) {
    const auto type = all.public_attribute<CallType>(kCallType);
    const auto is = [type](Direction way, CallType what) {
      return [=](const ItemRef& item) { return item->direction == way && type(*item) == what; };
    };
    // The client's side. A message about a request that is worked on has its call's name, and no type. What ACK
    // retransmits is watched already: it has not entered.
    all.handle(
        kMessageInsertedIntoBag, [this](const ItemRef& item) { watch(*item); },
        [request = is(Direction::down, CallType::request)](const ItemRef& item) {
          return request(item) && item->has_entered();
        });
    all.handle(
        kMessageInsertedIntoBag, [this](const ItemRef& item) { heard(item); },
        [this, none = is(Direction::up, CallType::none)](const ItemRef& item) {
          return none(item) && call_(*item) != 0;
        });
    all.handle(kCallEnded,
               [this](CallId call) { std::erase_if(watched_, [&](const Watched& one) { return one.call == call; }); });
    // The server's side.
    all.handle(
        kMessageInsertedIntoBag, [this](const ItemRef& item) { works(item); }, is(Direction::up, CallType::request));
    all.handle(kRequestEnded, [this](const ItemRef& item) { std::erase(at_work_, item); });
  }

  void watch(Item& item) noexcept {
    call_.set(item, item.call());
    attempt([&] { watched_.push_back({item.call(), item.session().get()}); });  // else its call ends by its bound
    tick();
  }

  void heard(const ItemRef& item) noexcept {
    for (Watched& one : watched_)
      if (one.call == call_(*item) && one.session == item->session().get()) one.silences = 0;
    parts_.bag().erase(item);
  }

  void works(const ItemRef& item) noexcept {
    if (!item->in_bag()) return;
    attempt([&] { at_work_.push_back(item); });  // else its client takes it for lost
    tick();
  }

  /// The timer runs only while a request is watched or worked on.
  void tick() noexcept {
    if (timer_ == 0) timer_ = parts_.events().set_timer(*tick_, interval_, Repeat::once);
  }

  void ticked() noexcept {
    timer_ = 0;
    for (std::size_t i = 0; i < at_work_.size(); ++i) {
      const ItemRef item =
          parts_.bag().new_item(at_work_[i]->session(), Direction::down, Message(parts_.host().pool()));
      if (!item) continue;
      call_.set(*item, call_(*at_work_[i]));
      parts_.bag().insert(item);
    }
    for (std::size_t i = 0; i < watched_.size();) {
      if (++watched_[i].silences <= silences_) {
        ++i;
        continue;
      }
      const Watched silent = watched_[i];
      watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(i));
      parts_.events().raise(*silent_, Raise::asynchronous, silent.call, silent.session);
    }
    if (!watched_.empty() || !at_work_.empty()) tick();
  }

  MicroParts parts_;
  const Duration interval_;
  const std::uint64_t silences_;
  Attribute<CallId> call_;
  const Raisable<>* const tick_;
  const Raisable<CallId, const Session*>* const silent_;
  Events::TimerId timer_ = 0;
  std::vector<Watched> watched_;
  std::vector<ItemRef> at_work_;
};

}  // namespace

MicroKind still_working_kind() {
  return {
      .name = "STILL_WORKING",
      .summary = "tells calls that take long from those whose server has failed",
      .exports = {kServerSilent.name},
      .imports = {kMessageInsertedIntoBag.name, kRequestEnded.name, kCallEnded.name},
      .needs = {{"GRPC"}},
      .options = {{"interval", OptionType::duration, "between two messages about a request; 1s", false, "1ms", "3600s"},
                  {"silences", OptionType::number, "after how many intervals without one its server has failed; 4",
                   false, "2"}},
      .make = make_micro<StillWorking>};
}

}  // namespace lrpc::netrpc::composite
