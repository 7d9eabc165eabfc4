// Attacks the conversion of values between XDR and packed images, from both sides: arguments come from anybody, results
// from any server. A value that is accepted on one side is accepted on the other, with the same meaning. The same holds
// for a client whose server is a foreign program that speaks XDR.
#include "xdr_values.h"

#include <vector>

#include "input.h"
#include "lrpc/stubgen/layout/compile.h"

namespace lrpc::sun {
namespace {

using fuzz::require;

/// Every parameter goes both ways, so that an echo's results are its arguments.
constexpr const char* kEcho = R"(interface Echo version 1.0 {
  enum Small : uint8 { A = 0, B = 4 }
  enum Wide : uint64 { First = 1, Last = 0xffff_ffff_ffff_ffff }
  type Percent = uint8 range 0 .. 100;
  type Label = string<6>;
  record Inner { flag: bool; share: Percent; kind: Small; name: Label; }
  record Outer { tag: int16; inner: Inner[2]; block: byte[5]; real: float64; flags: bool[3]; }
  procedure Words(inout a: int8, inout b: uint16, inout c: int64, inout d: Small, inout e: Wide, inout f: Percent);
  procedure Records(inout a: Outer, inout b: uint16[2][3]);
  procedure Windows(inout a: string<9>, inout b: bytes<40>, inout c: Label[2], inout d: bytes<4000>);
})";

const stubgen::Interface& echo() {
  static const stubgen::Interface compiled = [] {
    stubgen::Diagnostics diagnostics;
    auto interface = stubgen::compile({"echo", kEcho}, diagnostics);
    require(interface.has_value(), "the interface is right");
    return *std::move(interface);
  }();
  return compiled;
}

/// The conversion of a client's own arguments, and of a server's results in XDR, is the reverse of the other direction.
void attack_client(const stubgen::Procedure& procedure, std::span<const std::byte> xdr,
                   const std::vector<std::byte>* packed) {
  Scratch scratch;
  std::vector<std::byte> results;
  const auto status = pack_results(procedure, xdr, scratch, results);
  require(status.has_value() == (packed != nullptr), "a server may return what it may be sent, and nothing else");
  if (packed == nullptr) return;
  require(*status == 0 && results == *packed, "and means the same by it");
  netrpc::XdrWriter sent;
  require(unpack_arguments(procedure, *packed, scratch, sent), "what is packed can be sent");
  require(sent.bytes().size() <= ArgumentSizes().most(procedure), "and is no longer than was promised");
}

void attack(fuzz::Input input) {
  const std::uint8_t choice = input.byte();
  const stubgen::Procedure& procedure = echo().procedures[choice / 2 % echo().procedures.size()];
  Scratch scratch;
  std::vector<std::byte> packed;
  netrpc::XdrWriter xdr;
  if (choice % 2 == 0) {
    const auto sent = input.rest();
    const bool accepted = pack_arguments(procedure, sent, scratch, packed);
    attack_client(procedure, sent, accepted ? &packed : nullptr);
    if (!accepted) return;
  } else {
    const auto returned = input.rest();
    if (!unpack_results(procedure, 0, returned, scratch, xdr)) return;
    require(pack_arguments(procedure, xdr.bytes(), scratch, packed), "what a server may return can be sent to it");
    xdr.clear();
  }
  require(unpack_results(procedure, 0, packed, scratch, xdr), "what a client may send can be returned to it");
  std::vector<std::byte> again;
  require(pack_arguments(procedure, xdr.bytes(), scratch, again) && again == packed, "and means what it meant");
}

}  // namespace
}  // namespace lrpc::sun

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lrpc::sun::attack({data, size});
  return 0;
}
