/* pci.h: a device on the PCI bus, as the system describes it. */
#ifndef LEAT_TOOLS_BENCH_PCI_H
#define LEAT_TOOLS_BENCH_PCI_H

struct pci_device {
    char model[96];      /* as the NVIDIA driver has it; else "unknown" */
    char driver[64];     /* the driver's version; else "unknown" */
    char link_speed[32]; /* as sysfs has it: "32.0 GT/s PCIe"; else "unknown" */
    int link_width;      /* lanes; 0: unknown */
    char most_speed[32]; /* the most that device and slot support */
    int most_width;
};

/*
 * Reads what there is under `root`, which is "" but in tests; what is missing
 * is unknown.
 */
void pci_read(struct pci_device *out, const char *root, const char *bus_id);

#endif
