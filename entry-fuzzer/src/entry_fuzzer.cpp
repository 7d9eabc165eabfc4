#include "lrpc/entry_fuzzer.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "call/call_path.h"
#include "call/served_binding.h"
#include "lrpc/detail/shim/call/packed_image.h"

namespace lrpc::fuzz {
namespace {

/// The input as a little program: taken from its front, all zero behind its end.
class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) noexcept : left_(bytes) {}
  [[nodiscard]] bool more() const noexcept { return !left_.empty(); }
  std::uint8_t byte() noexcept {
    const auto one = bytes(1);
    return one.empty() ? std::uint8_t{0} : std::to_integer<std::uint8_t>(one[0]);
  }
  std::span<const std::byte> bytes(std::size_t count) noexcept {
    const auto taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::byte> left_;
};

thread_local Input* current = nullptr;

/// What interfere() may rewrite: the fixed part and the fronts of the windows, not megabytes.
struct Exposed {
  std::span<std::byte> image;
  std::span<std::byte> tail;
};
thread_local Exposed exposed;

constexpr std::size_t kTailFront = 64 * 1024;

void require(bool good, std::string_view procedure, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(procedure.size()), procedure.data(), what);
  std::abort();
}

bool exists(Errc code) noexcept {
  // An Errc that this library does not know would be described like one that it cannot name.
  return code != Errc::ok && describe(code) != describe(static_cast<Errc>(0x7fff));
}

/// Names of bits in the second byte of a call.
constexpr std::uint8_t kLengthsNearBounds = 1;  ///< Lengths of variable parameters are ones that matter.
constexpr std::uint8_t kKnownHandles = 2;       ///< Handles are some that the server gave out.

std::shared_ptr<server::ServedBinding> make_binding(const Pdl& pdl) {
  // Its A-stacks are not used: the fuzzer's end where they should.
  static constexpr AStackClass kSmall[] = {{.image_size = 16, .tail_size = 0, .count = 1}};
  auto layout = shim::RegionLayout::of(kSmall);
  if (!layout) fail("no layout for a binding");
  auto region = shim::Region::private_to_this_domain(*std::move(layout));
  if (!region) fail("no memory for a binding");
  auto interface = std::make_shared<server::ServedInterface>();
  interface->pdl = &pdl;
  server::ServedParts parts;
  parts.id = 1;
  parts.gate = shim::Gate::none;
  parts.region = *std::move(region);
  parts.interface = std::move(interface);
  return std::make_shared<server::ServedBinding>(std::move(parts));
}

}  // namespace

struct EntryFuzzer::Parts {
  Parts(const Pdl& interface, std::span<const EntryStub> entries, void* implementation,
        std::span<const HandlePlace> places)
      : pdl(interface), stubs(entries), impl(implementation), handles(places), binding(make_binding(interface)) {}

  void call(Input& input);
  void fill_lengths(Input& input, const ProcedureDescriptor& procedure) const;
  void fill_handles(Input& input, std::uint16_t identifier);
  void note_handles(std::uint16_t identifier);
  void check(const ProcedureDescriptor& procedure, std::uint16_t status);
  [[nodiscard]] std::byte* tail_of(std::uint16_t astack_class);

  const Pdl& pdl;
  const std::span<const EntryStub> stubs;
  void* const impl;
  const std::span<const HandlePlace> handles;
  const std::shared_ptr<server::ServedBinding> binding;
  server::PrimedContext context;
  std::unique_ptr<std::byte[]> image;
  std::byte* tail = nullptr;
  std::map<std::uint32_t, std::vector<std::uint64_t>> granted;  ///< By tag.
  std::uint64_t returned = 0;
};

std::byte* EntryFuzzer::Parts::tail_of(std::uint16_t astack_class) {
  const std::size_t size = pdl.classes[astack_class].tail_size;
  if (size == 0) return nullptr;
  // Large and slow to come by, so that they last; the front is zeroed before each call. They end where the class does.
  static std::map<std::pair<const Pdl*, std::uint16_t>, std::unique_ptr<std::byte[]>> tails;
  auto& memory = tails[{&pdl, astack_class}];
  if (memory == nullptr) memory = std::make_unique<std::byte[]>(size);
  std::memset(memory.get(), 0, std::min(size, kTailFront));
  return memory.get();
}

/// Random bytes are seldom a length that goes through.
void EntryFuzzer::Parts::fill_lengths(Input& input, const ProcedureDescriptor& procedure) const {
  for (const VariableParameter& variable : procedure.variable_parameters) {
    if (!variable.in) continue;
    const std::uint8_t chosen = input.byte();
    const std::array<std::uint32_t, 7> edges{
        0,
        1,
        variable.inline_capacity,
        variable.inline_capacity + 1,
        std::min<std::uint32_t>(variable.bound, static_cast<std::uint32_t>(chosen) * 16),
        variable.bound,
        variable.bound + 1};
    const std::uint32_t length =
        edges[chosen % edges.size()] | ((chosen & 0x80) != 0 ? VariableParameter::kInTail : 0U);
    std::memcpy(image.get() + variable.length_offset, &length, sizeof length);
  }
}

void EntryFuzzer::Parts::fill_handles(Input& input, std::uint16_t identifier) {
  for (const HandlePlace& place : handles) {
    if (place.procedure != identifier || place.result) continue;
    const auto known = granted.find(place.tag);
    if (known == granted.end()) continue;
    const std::uint64_t value = known->second[input.byte() % known->second.size()];
    std::memcpy(image.get() + place.offset, &value, sizeof value);
  }
}

void EntryFuzzer::Parts::note_handles(std::uint16_t identifier) {
  for (const HandlePlace& place : handles) {
    if (place.procedure != identifier || !place.result) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, image.get() + place.offset, sizeof value);
    granted[place.tag].push_back(value);
  }
}

void EntryFuzzer::Parts::check(const ProcedureDescriptor& procedure, std::uint16_t status) {
  if ((status & shim::call_status::kFailed) != 0) {
    require(exists(static_cast<Errc>(status & ~(shim::call_status::kFailed | shim::call_status::kTold))),
            procedure.name, "a failure without a name");
    return;
  }
  const auto shape = shim::PackedShape::of_status(procedure, status);
  require(shape.has_value(), procedure.name, "raised an error that it does not declare");
  ++returned;
  if (shape->most() > kTailFront) return;
  // What the client, or another host's, takes off the A-stack.
  std::vector<std::byte> packed(shape->most());
  const shim::AStack astack{.image = image.get(), .tail = tail, .astack_class = procedure.astack_class};
  const auto size = shim::pack(*shape, astack, packed);
  require(size.has_value(), procedure.name, "returned results that break their own bounds");
}

void EntryFuzzer::Parts::call(Input& input) {
  std::size_t chosen = input.byte();
  if (pdl.procedures.size() > 256) chosen = chosen << 8 | input.byte();
  const auto identifier = static_cast<std::uint16_t>(chosen % pdl.procedures.size());
  const ProcedureDescriptor& procedure = pdl.procedures[identifier];
  const std::uint8_t flags = input.byte();
  const auto fixed = input.bytes(procedure.image_size);
  image = std::make_unique<std::byte[]>(procedure.image_size);
  if (!fixed.empty()) std::memcpy(image.get(), fixed.data(), fixed.size());
  tail = tail_of(procedure.astack_class);
  if ((flags & kLengthsNearBounds) != 0) fill_lengths(input, procedure);
  if ((flags & kKnownHandles) != 0) fill_handles(input, identifier);
  const std::size_t tail_front = std::min<std::size_t>(pdl.classes[procedure.astack_class].tail_size, kTailFront);
  if (tail != nullptr) {
    const std::size_t count = input.byte() + std::size_t{256} * (input.byte() & 0xf);
    const auto bytes = input.bytes(std::min(count, tail_front));
    if (!bytes.empty()) std::memcpy(tail, bytes.data(), bytes.size());
  }
  exposed = {{image.get(), procedure.image_size}, {tail, tail == nullptr ? 0 : tail_front}};

  shim::AStackHead head{};
  const shim::CallWord word = shim::CallWord::called(1, identifier, shim::kNoProcessor);
  head.word.store(word.bits());
  server::ServedAStack astack;
  astack.image = image.get();
  astack.tail = tail;
  astack.head = &head;
  astack.binding = binding.get();
  astack.impl = impl;
  astack.astack_class = procedure.astack_class;
  context.prime(astack, word);
  const std::uint16_t status = server::enter(stubs[identifier], astack, context);
  context.done();
  exposed = {};
  if (status == 0) note_handles(identifier);
  check(procedure, status);
}

EntryFuzzer::EntryFuzzer(const Pdl& pdl, std::span<const EntryStub> stubs, void* implementation,
                         std::span<const HandlePlace> handles)
    : parts_(std::make_unique<Parts>(pdl, stubs, implementation, handles)) {}

EntryFuzzer::~EntryFuzzer() { parts_->binding->handles().close_all(); }

void EntryFuzzer::run(std::span<const std::byte> bytes) {
  Input input(bytes);
  current = &input;
  for (int i = 0; i < kMaxCalls && input.more(); ++i) parts_->call(input);
  current = nullptr;
}

std::uint64_t EntryFuzzer::returned() const noexcept { return parts_->returned; }

std::size_t choose(std::size_t bound) { return current == nullptr ? 0 : current->byte() % bound; }

void interfere(CallContext& /*context*/) {
  const std::size_t how = choose(8);
  if (how == 0 || how > 3) return;
  const std::size_t at = choose(256);
  const auto bits = static_cast<std::byte>(choose(256));
  for (const std::span<std::byte> memory : {exposed.image, exposed.tail}) {
    if (memory.empty()) continue;
    if (how == 1) std::ranges::fill(memory, bits);
    if (how == 2) memory[at % memory.size()] = bits;
    if (how == 3)
      for (std::byte& byte : memory) byte ^= bits;
  }
}

void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void look_at_bytes(std::span<const std::byte> bytes) {
  // Volatile, so that each load is made, and seen by a sanitizer.
  const auto* const at = reinterpret_cast<const volatile unsigned char*>(bytes.data());
  unsigned sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) sum ^= at[i];
  static volatile unsigned seen = 0;
  seen = seen ^ sum;
}

void fill(Buffer& buffer) {
  const std::size_t sizes[] = {buffer.size(), 0, 1, buffer.capacity() / 2, buffer.capacity(), buffer.capacity()};
  const std::size_t chosen = sizes[choose(std::size(sizes))];
  if (buffer.resize(std::min(chosen, buffer.capacity()))) std::ranges::fill(buffer.contents(), std::byte{0x5a});
}

}  // namespace lrpc::fuzz
