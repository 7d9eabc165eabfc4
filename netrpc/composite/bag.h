// The messages of a composite protocol: an unordered bag that all micro-protocols see, each message with attributes and
// one send bit for each micro-protocol that has a say in when it leaves (Bhatti and Schlichting §3.4, §4.1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>

#include "lrpc/netrpc/message.h"
#include "lrpc/netrpc/protocol.h"
#include "netrpc/composite/events.h"
#include "netrpc/src/cells.h"
#include "netrpc/src/host_shares.h"

namespace lrpc::netrpc::composite {

class Bag;
class Item;

/// Which way a message goes through the graph.
enum class Direction : std::uint8_t { up, down };

using ItemRef = Ref<Item>;

/// Names a call, on the host that makes it. 0: none.
using CallId = std::uint64_t;

/// A message in a composite protocol (the paper's CP message). Lives as long as somebody has an ItemRef to it, in the
/// bag or not.
class Item {
 public:
  static constexpr std::size_t kAttributeBytes = 192;

  Item(Bag& bag, SessionRef session, Direction way, Message&& content, std::uint64_t missing) noexcept
      : message(std::move(content)), direction(way), bag_(bag), session_(std::move(session)), missing_(missing) {}
  Item(const Item&) = delete;
  Item& operator=(const Item&) = delete;

  Message message;  ///< Without the attributes' header. Empty once it has left.
  const Direction direction;
  /// That it has come through, or leaves by: the peer's.
  [[nodiscard]] const SessionRef& session() const noexcept { return session_; }
  /// In call style. Down: the request of this call. Up: its reply, which ends the call when it leaves.
  [[nodiscard]] CallId call() const noexcept { return call_; }
  /// Down: the reply to this request. Null: it is none.
  [[nodiscard]] const ItemRef& answers() const noexcept { return answers_; }
  /// Of a request: nobody waits for its answer (MicroParts::mark_orphan()).
  [[nodiscard]] bool is_orphan() const noexcept { return orphan_; }
  /// It has come from above or below, or goes as if it had (MicroParts::mark_entered()); else a micro-protocol has made
  /// it.
  [[nodiscard]] bool has_entered() const noexcept { return entered_; }
  [[nodiscard]] bool was_inserted() const noexcept { return state_ != State::outside; }
  [[nodiscard]] bool in_bag() const noexcept { return state_ >= State::inserted && state_ <= State::leaving; }
  [[nodiscard]] bool has_left() const noexcept { return state_ == State::leaving || state_ == State::gone; }
  /// Not all who handle the insertion have seen it: it may find no room yet.
  [[nodiscard]] bool is_new() const noexcept { return state_ == State::inserted && (missing_ & kInsertion) != 0; }
  /// What the layer below said when it left downwards, or why it was deleted; ok until then.
  [[nodiscard]] Errc outcome() const noexcept { return outcome_; }

 private:
  friend class Bag;
  friend class Framework;
  friend class MicroParts;
  friend class Ref<Item>;
  friend class AttributeTable;
  template <class T>
  friend class PublicAttribute;
  template <class T>
  friend class Attribute;

  /// Each only once, and in this order; from one in the bag to `erased` at any time before it is leaving.
  enum class State : std::uint8_t {
    outside,
    inserted,  ///< In the bag.
    ready,     ///< In the bag. All send bits are set, and who handles that is being told.
    leaving,   ///< In the bag until the layer above or below has had it, and who handles that has been told.
    gone,
    erased,
  };

  static constexpr std::uint64_t kInsertion = 1;  ///< The bag's own send bit: all have seen the insertion.

  void unreferenced() noexcept;

  Bag& bag_;
  const SessionRef session_;
  std::uint64_t missing_;  ///< Send bits that are not set.
  std::uint32_t references_ = 0;
  State state_ = State::outside;
  bool entered_ = false;
  bool request_ = false;  ///< Up: it leaves as a request.
  bool orphan_ = false;
  bool given_ = false;      ///< A request: the protocol above is being given it.
  bool over_ = false;       ///< It has been answered or let go of.
  HostShares::Part place_;  ///< A request's, while it waits, and while the protocol above works on it.
  CallId call_ = 0;
  ItemRef answers_;
  Errc outcome_ = Errc::ok;
  Item* next_ = nullptr;  ///< In the bag.
  Item* previous_ = nullptr;
  std::array<std::byte, kAttributeBytes> attributes_{};
};

// ---- attributes ----

/// An attribute of all messages, for whoever may read it. Zero until it is set.
template <class T>
class PublicAttribute {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  [[nodiscard]] T operator()(const Item& item) const noexcept {
    T value;
    std::memcpy(&value, item.attributes_.data() + offset_, sizeof value);
    return value;
  }

 protected:
  friend class AttributeTable;
  explicit PublicAttribute(std::size_t offset) noexcept : offset_(offset) {}
  std::size_t offset_;
};
/// The same for the micro-protocol that has declared it, which alone sets it.
template <class T>
class Attribute : public PublicAttribute<T> {
 public:
  void set(Item& item, T value) const noexcept {
    std::memcpy(item.attributes_.data() + this->offset_, &value, sizeof value);
  }

 private:
  friend class AttributeTable;
  using PublicAttribute<T>::PublicAttribute;
};

enum class Visibility : std::uint8_t { of_owner, of_all };
enum class InHeader : std::uint8_t { no, yes };

/// Whether T may have any bits of its size: what comes from a peer is not looked at.
template <class T>
inline constexpr bool is_any_bits = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T>
requires std::is_enum_v<T>
inline constexpr bool is_any_bits<T> = requires { T{0}; }
&&is_any_bits<std::underlying_type_t<T>>;

/// How the attributes of a message become its header, and back (§3.4). Both are called under the monitor, with `size`
/// bytes to write or to read. `read` returns false for a malformed header; it looks at each value that a peer may
/// have chosen.
struct HeaderMapping {
  std::size_t size = 0;  ///< At most kAttributeBytes.
  std::function<void(const Item&, std::byte*)> write{};
  std::function<bool(Item&, const std::byte*)> read{};
};

/// The attributes of one composition: where each lies in an item, and how those that travel lie in the header: a tag of
/// 16 bits from their names and sizes, then integers in network order, in the order of their names, so that two hosts
/// agree whatever order their graphs write, and notice when what they have composed differs.
class AttributeTable {
 public:
  /// Null text: done. Else why not. `owner`: the micro-protocol's name. Only types of which each bit pattern is a value
  /// travel: integers, and enums whose underlying type is written down.
  template <class T>
  [[nodiscard]] Attribute<T> declare(const std::string& owner, const std::string& name, Visibility seen,
                                     InHeader travels, std::string& why_not) {
    static_assert(std::is_trivially_copyable_v<T>);
    return Attribute<T>(
        place({owner, name, typeid(T), sizeof(T), 0, seen, travels}, alignof(T), is_any_bits<T>, why_not));
  }
  /// Of another micro-protocol.
  template <class T>
  [[nodiscard]] PublicAttribute<T> find(const std::string& name, std::string& why_not) const {
    return PublicAttribute<T>(find_public(name, typeid(T), why_not));
  }
  /// Any one, by its owner's name and its own: "FIFO.number".
  template <class T>
  [[nodiscard]] Attribute<T> find_any(const std::string& name, std::string& why_not) const {
    return Attribute<T>(find(name, typeid(T), why_not));
  }
  /// Nothing is declared any more. `mapping`: in the place of the one described above, if it has functions.
  void seal(HeaderMapping mapping);

  [[nodiscard]] std::size_t header_size() const noexcept { return mapping_.size; }
  /// `to`, `from`: header_size() bytes. False: the header is malformed.
  void write_header(const Item& item, std::byte* to) const { mapping_.write(item, to); }
  [[nodiscard]] bool read_header(Item& item, const std::byte* from) const { return mapping_.read(item, from); }
  /// "ACK.interval = 7", one behind the other; of what is no integer its bytes.
  [[nodiscard]] std::string describe(const Item& item) const;

 private:
  struct Declared {
    std::string owner;
    std::string name;
    std::type_index type;
    std::size_t size = 0;
    std::size_t offset = 0;
    Visibility seen = Visibility::of_owner;
    InHeader travels = InHeader::no;
  };
  [[nodiscard]] std::size_t place(Declared declared, std::size_t alignment, bool integer, std::string& why_not);
  [[nodiscard]] std::size_t find_public(const std::string& name, std::type_index type, std::string& why_not) const;

  [[nodiscard]] std::size_t find(const std::string& name, std::type_index type, std::string& why_not) const;
  [[nodiscard]] HeaderMapping mapping_of_integers() const;

  std::vector<Declared> all_;
  std::size_t used_ = 0;
  HeaderMapping mapping_;
};

// ---- the bag ----

/// Names a micro-protocol's bit.
struct SendBit {
  std::uint64_t mask = 0;
};

class Bag {
 public:
  /// `inserted`, `deleted` and `ready` are raised here, synchronously. `leave`: sends a message that is ready on its
  /// way, says what the layer below said, and tells who handles that. `has_room`: asked of each message that is left
  /// when all have seen its insertion; if there is none, it is erased with limit_reached.
  Bag(Events& events, const Raisable<ItemRef>& inserted, const Raisable<ItemRef>& deleted,
      const Raisable<ItemRef>& ready, std::function<void(const ItemRef&, Errc&)> leave,
      std::function<bool(const ItemRef&)> has_room)
      : events_(events),
        inserted_(inserted),
        deleted_(deleted),
        ready_(ready),
        leave_(std::move(leave)),
        has_room_(std::move(has_room)) {}
  Bag(const Bag&) = delete;
  Bag& operator=(const Bag&) = delete;
  ~Bag() { empty(); }

  /// A bit that each message needs from now on. Nothing: 63 are given out already.
  [[nodiscard]] SendBit add_send_bit() noexcept;
  /// The same for one who has the last word: `asked` is called when all other bits of a message are set. Nothing: there
  /// is such a bit already.
  [[nodiscard]] SendBit add_last_send_bit(std::function<void(const ItemRef&)> asked);

  /// newItem. Null, which the others take and do nothing with: there is no memory.
  [[nodiscard]] ItemRef new_item(const SessionRef& session, Direction direction, Message&& message) noexcept;
  /// Another one, not in the bag, with the same session, message and attributes, for as long as the message has not
  /// left. Null: there is no memory.
  [[nodiscard]] ItemRef copy_of(const ItemRef& item) noexcept;
  /// insertItem; once for each item. It leaves when all its send bits are set, at the earliest when all who handle the
  /// insertion have seen it; then it is deleted from the bag.
  void insert(const ItemRef& item) noexcept;
  /// deleteItem. It does not leave any more; `why`: what who has pushed it is told. No effect on one that is not in the
  /// bag, or leaves already.
  void erase(const ItemRef& item, Errc why = Errc::ok) noexcept;
  /// Deletes all, without an event: what the paper's empty() does.
  void empty() noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// setSendBit.
  void set_send_bit(SendBit bit, const ItemRef& item) noexcept;
  /// sprintItem: "down, 12 bytes, in the bag, 1 bit missing", without attributes.
  [[nodiscard]] static std::string describe(const Item& item);
  /// Calls visit(ItemRef) for each that is there; it may insert and erase.
  template <class Visit>
  void for_each(Visit visit) {
    Visiting here(*this);
    while (here.next != nullptr) visit(ItemRef(std::exchange(here.next, here.next->next_)));
  }

 private:
  friend class Item;
  static constexpr std::uint64_t kInsertion = Item::kInsertion;
  struct Visiting {
    explicit Visiting(Bag& of) noexcept : bag(of), next(of.first_), outer(std::exchange(of.visiting_, this)) {}
    Visiting(const Visiting&) = delete;
    Visiting& operator=(const Visiting&) = delete;
    ~Visiting() {
      Visiting** at = &bag.visiting_;  // not always the first: another thread may have begun later
      while (*at != this) at = &(*at)->outer;
      *at = outer;
    }
    Bag& bag;
    Item* next;
    Visiting* outer;
  };
  void unlink(const ItemRef& item, Item::State state) noexcept;
  void leave_if_ready(const ItemRef& item) noexcept;

  Events& events_;
  const Raisable<ItemRef>& inserted_;
  const Raisable<ItemRef>& deleted_;
  const Raisable<ItemRef>& ready_;
  const std::function<void(const ItemRef&, Errc&)> leave_;
  const std::function<bool(const ItemRef&)> has_room_;
  Cells<Item> items_;
  Item* first_ = nullptr;
  Visiting* visiting_ = nullptr;
  std::size_t count_ = 0;
  std::uint64_t needed_ = kInsertion;
  std::uint64_t last_ = 0;
  std::function<void(const ItemRef&)> ask_last_;
};

}  // namespace lrpc::netrpc::composite
