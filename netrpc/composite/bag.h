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
  /// The session to the peer, through which the message came or will leave.
  [[nodiscard]] const SessionRef& session() const noexcept { return session_; }
  /// With calls. Down: the call whose request this is. Up, in push style: the call whose reply this is. 0: none.
  [[nodiscard]] CallId call() const noexcept { return call_; }
  /// Down: the request that this item answers. Null: it is no reply.
  [[nodiscard]] const ItemRef& answers() const noexcept { return answers_; }
  /// Of a request: nobody waits for its answer (MicroParts::mark_orphan()).
  [[nodiscard]] bool is_orphan() const noexcept { return orphan_; }
  /// It came from above or below, or is treated as if it had (MicroParts::mark_entered()); otherwise a micro-protocol
  /// made it.
  [[nodiscard]] bool has_entered() const noexcept { return entered_; }
  [[nodiscard]] bool was_inserted() const noexcept { return state_ != State::outside; }
  [[nodiscard]] bool in_bag() const noexcept { return state_ >= State::inserted && state_ <= State::leaving; }
  [[nodiscard]] bool has_left() const noexcept { return state_ == State::leaving || state_ == State::gone; }
  /// Not all handlers of its insertion have run: it may still be erased for lack of room.
  [[nodiscard]] bool is_new() const noexcept { return state_ == State::inserted && (missing_ & kInsertion) != 0; }
  /// The outcome of the layer below when it left downwards, or why it was deleted; ok until then.
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

  /// Each at most once, and in this order; from `inserted` or `ready` an item can become `erased`.
  enum class State : std::uint8_t {
    outside,
    inserted,  ///< In the bag.
    ready,     ///< In the bag. All send bits are set, and the handlers of Message_Ready_To_Be_Sent run.
    leaving,   ///< In the bag. The layer above or below takes it, then the handlers of its leaving run.
    gone,
    erased,
  };

  static constexpr std::uint64_t kInsertion = 1;  ///< The bag's own send bit: set after all handlers of its insertion.

  void unreferenced() noexcept;

  Bag& bag_;
  const SessionRef session_;
  std::uint64_t missing_;  ///< Send bits that are not set.
  std::uint32_t references_ = 0;
  State state_ = State::outside;
  bool entered_ = false;
  bool request_ = false;  ///< Up: it leaves as a request.
  bool orphan_ = false;
  bool given_ = false;      ///< The protocol above is receiving this request.
  bool over_ = false;       ///< This request has ended (kRequestEnded).
  HostShares::Part place_;  ///< A request's, while it waits, then while it is in the protocol above.
  CallId call_ = 0;
  ItemRef answers_;
  Errc outcome_ = Errc::ok;
  Item* next_ = nullptr;  ///< In the bag.
  Item* previous_ = nullptr;
  std::array<std::byte, kAttributeBytes> attributes_{};
};

// ---- attributes ----

/// Reads an attribute of a message. Zero until it is set.
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
/// The same for the micro-protocol that declared it, and for header mappings: only these set it.
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

/// Whether each bit pattern is a value of T. The framework does not check the values that a peer sends.
template <class T>
inline constexpr bool is_any_bits = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T>
requires std::is_enum_v<T>
inline constexpr bool is_any_bits<T> = requires { T{0}; }
&&is_any_bits<std::underlying_type_t<T>>;

/// How the attributes of a message become its header, and back (§3.4). Both are called under the monitor, with `size`
/// bytes to write or to read. `read` must check each value that a peer may have chosen; it returns false for a
/// malformed header.
struct HeaderMapping {
  std::size_t size = 0;  ///< At most kAttributeBytes.
  std::function<void(const Item&, std::byte*)> write{};
  std::function<bool(Item&, const std::byte*)> read{};
};

/// The attributes of one composition: their places in an item, and the header of those that are sent. The header begins
/// with a tag of 16 bits, a hash of their names and sizes, by which hosts notice that their compositions differ. Then
/// come the integers in network order, sorted by owner and name, so that the order in a graph's text does not matter.
class AttributeTable {
 public:
  /// Declares an attribute of the micro-protocol `owner`. `why_not`: empty on success, else the reason. Only types of
  /// which each bit pattern is a value can be sent: integers other than bool, and enums with a fixed underlying type.
  template <class T>
  [[nodiscard]] Attribute<T> declare(const std::string& owner, const std::string& name, Visibility seen,
                                     InHeader travels, std::string& why_not) {
    static_assert(std::is_trivially_copyable_v<T>);
    return Attribute<T>(
        place({owner, name, typeid(T), sizeof(T), 0, seen, travels}, alignof(T), is_any_bits<T>, why_not));
  }
  /// The public attribute of this name.
  template <class T>
  [[nodiscard]] PublicAttribute<T> find(const std::string& name, std::string& why_not) const {
    return PublicAttribute<T>(find(name, true, typeid(T), why_not));
  }
  /// Any attribute, by owner and name: "FIFO.number".
  template <class T>
  [[nodiscard]] Attribute<T> find_any(const std::string& name, std::string& why_not) const {
    return Attribute<T>(find(name, false, typeid(T), why_not));
  }
  /// Ends the declarations. `mapping` replaces the header described above, if it has functions.
  void seal(HeaderMapping mapping) { mapping_ = mapping.write ? std::move(mapping) : mapping_of_integers(); }

  [[nodiscard]] std::size_t header_size() const noexcept { return mapping_.size; }
  /// `to`, `from`: header_size() bytes. False: the header is malformed.
  void write_header(const Item& item, std::byte* to) const { mapping_.write(item, to); }
  [[nodiscard]] bool read_header(Item& item, const std::byte* from) const { return mapping_.read(item, from); }
  /// "ACK.interval = 7" for each attribute; one of more than 8 bytes as its bytes in hexadecimal.
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
  /// `is_public`: among the public attributes, by its name; otherwise any, by owner and name.
  [[nodiscard]] std::size_t find(const std::string& name, bool is_public, std::type_index type,
                                 std::string& why_not) const;
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
  /// The bag raises `inserted`, `deleted` and `ready`, synchronously. `leave`: hands a ready message to the layer above
  /// or below, sets the outcome, and raises the event for that. `has_room`: called for each message that is still in
  /// the bag when all handlers of its insertion have run; if false, the message is erased with limit_reached.
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

  /// A bit that each message needs from now on. Mask 0: all 63 are taken.
  [[nodiscard]] SendBit add_send_bit() noexcept {
    const std::uint64_t next = needed_ + 1;  // all bits below are given out
    needed_ |= next;
    return {next};
  }
  /// The same for a micro-protocol that decides last: `asked` is called when all other bits of a message are set. Mask
  /// 0: there is such a bit already, or all 63 are taken.
  [[nodiscard]] SendBit add_last_send_bit(std::function<void(const ItemRef&)> asked);

  /// newItem. Null: there is no memory. insert(), erase() and set_send_bit() ignore null.
  [[nodiscard]] ItemRef new_item(const SessionRef& session, Direction direction, Message&& message) noexcept {
    return ItemRef(items_.make(*this, session, direction, std::move(message), needed_));
  }
  /// A new item, not in the bag, with the same session, direction, message and attributes. Call this before `item`
  /// leaves: its message is empty afterwards. Null: there is no memory.
  [[nodiscard]] ItemRef copy_of(const ItemRef& item) noexcept;
  /// insertItem; has an effect only once for each item. The item leaves when all its send bits are set, at the earliest
  /// when all handlers of its insertion have run; then it is deleted from the bag.
  void insert(const ItemRef& item) noexcept;
  /// deleteItem. The item does not leave. `why`: its outcome, which its push returns. No effect on an item that is not
  /// in the bag, or is leaving already.
  void erase(const ItemRef& item, Errc why = Errc::ok) noexcept;
  /// Deletes all, without an event: what the paper's empty() does.
  void empty() noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// setSendBit.
  void set_send_bit(SendBit bit, const ItemRef& item) noexcept;
  /// sprintItem: "down, 12 bytes, in the bag, 1 bit missing", without attributes.
  [[nodiscard]] static std::string describe(const Item& item);
  /// Calls visit(ItemRef) for each item in the bag; `visit` may insert and erase.
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
