// The components that protocols are built of: messages, maps, events, sessions.
#include <array>
#include <cstring>

#include "components.h"
#include "core/store.h"
#include "lrpc/netrpc/event_manager.h"
#include "lrpc/netrpc/map.h"
#include "lrpc/netrpc/message.h"
#include "sim_pair.h"

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;
using netrpc::Message;
using netrpc::Shepherd;

constexpr int kBatch = 100;

/// A key like those of protocols: hashed with a seed, because peers choose the values.
struct Key {
  std::uint64_t seed = 0;
  std::uint32_t value = 0;
  [[nodiscard]] std::uint64_t hash() const noexcept { return netrpc::mix(seed, value); }
  friend bool operator==(const Key& a, const Key& b) noexcept { return a.value == b.value; }
};

class GraphComponents final : public Components {
 public:
  Status start() {
    if (Status made = compose(); !made) return made;
    add_messages();
    add_maps();
    add_events();
    add_sessions();
    return {};
  }

 private:
  static constexpr std::uint32_t kBindings = 10'000;
  static constexpr std::size_t kHeader = 20;
  static constexpr netrpc::ProtocolNumber kFirst = 1'000'000;

  Status compose() {
    constexpr Stack kNull{"NULL-ETH", "eth = ETH; top = NULL over eth;", netrpc::Service::datagram};
    // At most 64 sessions, so that each new one replaces an old one.
    constexpr Stack kFragment{"FRAGMENT-VIP",
                              "eth = ETH; ip = IP; vip = VIP over eth, ip; top = FRAGMENT(sessions = 64) over vip;",
                              netrpc::Service::datagram};
    if (Status made = store(null_, SimPair::create(kNull)); !made) return made;
    return store(fragment_, SimPair::create(kFragment));
  }

  void add_messages() {
    netrpc::BufferPool& pool = null_->client().pool();
    add_inside(*null_, "message", "message of 1,024 bytes made and let go", 50, kBatch,
               [&pool] { return Message::make(pool, 1024).allocated(); });
    add_inside(*null_, "message copied", "the same with a copy of the user's 1,024 bytes", {}, kBatch,
               [this, &pool] { return Message::copy_of(pool, bytes_).allocated(); });
    {
      const Shepherd inside(null_->client().monitor());
      message_ = Message::make(pool, 64);
    }
    add_inside(*null_, "header", "header of 20 bytes pushed and popped", {}, kBatch, [this] {
      std::byte* const at = message_.push(kHeader);
      if (at == nullptr) return false;
      std::memset(at, 1, kHeader);
      asm volatile("" : : "r"(at) : "memory");
      Message::Header<kHeader> header;
      message_.pop(header);
      return static_cast<bool>(header);
    });
    add_inside(*null_, "message shared", "a second message over the same bytes made and let go", {}, kBatch,
               [this] { return message_.share().allocated(); });
  }

  void add_maps() {
    for (std::uint32_t value = 0; value < kBindings; ++value) map_.bind({kSeed, value}, value);
    add_each("map, same", "identifier looked up among 10,000: the same as before", {}, kBatch, [this] {
      Key key{kSeed, 7};
      asm volatile("" : "+r"(key.value) : : "memory");
      return map_.resolve(key) != nullptr;
    });
    add_each("map, in turn", "identifier looked up among 10,000: each in turn", {}, kBatch, [this] {
      return map_.resolve({kSeed, next_ = (next_ + 1) % kBindings}) != nullptr;
    });
    add_each("map, absent", "identifier looked up among 10,000: not there", {}, kBatch, [this] {
      return map_.resolve({kSeed, kBindings + next_++ % kBindings}) == nullptr;
    });
    add_each("map bound", "identifier bound and unbound, among 10,000", {}, kBatch, [this] {
      const Key key{kSeed, kBindings + next_++ % kBindings};
      map_.bind(key, key.value);
      return map_.unbind(key);
    });
  }

  void add_events() {
    const auto turn = [this] {
      events_.schedule(event_, 100ms);
      return events_.cancel(event_) == netrpc::Cancelled::will_not_run;
    };
    add_each("event", "event scheduled and cancelled, no other waits", {}, kBatch, turn);
    for (std::size_t i = 0; i < 1000; ++i) others_.push_back(std::make_unique<netrpc::Event>([] {}));
    add_each("event of 1,000", "event scheduled and cancelled, 1,000 others wait", {}, kBatch, turn);
    last().before = [this] {
      for (std::size_t i = 0; i < others_.size(); ++i)
        events_.schedule(*others_[i], std::chrono::milliseconds(i % 200));
      return true;
    };
    last().after = [this] {
      for (const auto& other : others_) events_.cancel(*other);
    };
  }

  void add_sessions() {
    add_inside(*null_, "null session", "null session opened and closed: NULL over ETH", 260, 10,
               [this] { return opens(*null_, kNullNumber); });
    add_inside(*fragment_, "kept session", "session that is kept opened again and closed: FRAGMENT-VIP", {}, 10,
               [this] { return opens(*fragment_, kFirst); });
    add_inside(*fragment_, "new session", "session made, another dropped: FRAGMENT-VIP", {}, 10,
               [this] { return opens(*fragment_, ++last_number_); });
    add_inside(*fragment_, "protocol enabled", "protocol enabled and disabled: FRAGMENT-VIP", {}, 10, [this] {
      const netrpc::ParticipantSet anyone{.protocol = kFirst - 1, .local = {}, .remote = {}};
      const bool enabled = fragment_->client_top().open_enable(fragment_->client_user(), anyone).has_value();
      fragment_->client_top().open_disable(fragment_->client_user(), anyone);
      return enabled;
    });
  }

  /// As add_each(), inside the monitor of the pair's client.
  template <class One>
  void add_inside(SimPair& pair, std::string name, std::string what, std::optional<double> paper_us,
                  std::size_t operations, One one) {
    add(std::move(name), std::move(what), paper_us, operations, [&pair, one, operations] {
      const Shepherd inside(pair.client().monitor());
      bool all = true;
      for (std::size_t i = 0; i < operations; ++i) all &= one();
      return all;
    });
  }
  static bool opens(SimPair& pair, netrpc::ProtocolNumber protocol) {
    return pair.client_top().open(pair.client_user(), to_server(pair, protocol)).has_value();
  }
  static netrpc::ParticipantSet to_server(SimPair& pair, netrpc::ProtocolNumber protocol) {
    netrpc::ParticipantSet participants = bench_participants(pair.client().address(), pair.server().address());
    participants.protocol = protocol;
    return participants;
  }

  static constexpr std::uint64_t kSeed = 0x6c72'7063;
  static constexpr netrpc::ProtocolNumber kNullNumber = netrpc::protocol_numbers::kFirstOfTests + 1;
  std::unique_ptr<SimPair> null_;
  std::unique_ptr<SimPair> fragment_;
  std::array<std::byte, 1024> bytes_{};
  Message message_;  // allocated from null_'s pool, and so destroyed before it
  netrpc::Map<Key, std::uint32_t> map_;
  std::uint32_t next_ = 0;
  netrpc::MonotonicClock clock_;
  netrpc::EventManager events_{clock_};
  netrpc::Event event_{[] {}};
  std::vector<std::unique_ptr<netrpc::Event>> others_;
  netrpc::ProtocolNumber last_number_ = kFirst;
};

}  // namespace

Result<std::unique_ptr<Components>> graph_components() {
  auto made = std::make_unique<GraphComponents>();
  if (const Status started = made->start(); !started) return started.error();
  return std::unique_ptr<Components>(std::move(made));
}

}  // namespace lrpc::bench
