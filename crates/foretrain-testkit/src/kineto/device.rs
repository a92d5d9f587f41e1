//! Runtime calls and device work.

use super::{Flow, Place, Writer, put};
use crate::dialect::{CommsStyle, ExternalStyle, TimeStyle, Vendor};
use crate::program::CopyKind;
use crate::schedule::{Api, Event};

impl Writer<'_> {
    pub(super) fn runtime(&mut self, out: &mut Vec<u8>, event: &Event, api: Api) {
        let place = Place::Host(self.thread_id(event.thread));
        let hip = self.layout.vendor == Vendor::Hip;
        let (name, code) = if hip { hip_call(api) } else { self.cuda_call(api) };
        self.begin(out, self.layout.runtime_cat, name, place, event);
        if self.layout.capital {
            let correlation = event.correlation;
            put(out, format_args!("\"cbid\": {code}, \"correlation\": {correlation},\n      "));
            put(out, format_args!("\"external id\": {}, \"external ts\": ", event.external));
            let us = self.local(event.start).div_euclid(1_000);
            put(out, format_args!("{us}"));
        } else {
            let key = if hip { "cid" } else { "cbid" };
            let correlation = event.correlation;
            put(out, format_args!("\"External id\": {}, \"{key}\": {code}", self.external(event)));
            put(out, format_args!(", \"correlation\": {correlation}"));
            if hip && is_launch(api) {
                let handle = if api == Api::LaunchEx { "0x5567d0a1c2f0" } else { "0x0" };
                put(out, format_args!(", \"stream\": \"{handle}\""));
            }
        }
        self.end(out);
        // PyTorch 1.10 to 2.2 also end a flow at every call that starts nothing.
        if is_launch(api) || (self.layout.external == ExternalStyle::Correlation) {
            self.launch_flow(out, is_launch(api), event, place);
        }
    }

    fn cuda_call(&self, api: Api) -> (&'static str, u32) {
        match api {
            Api::LaunchEx if self.layout.time != TimeStyle::IntMicros => {
                ("cudaLaunchKernelExC", 430)
            }
            Api::Launch | Api::LaunchEx => ("cudaLaunchKernel", 211),
            Api::Memcpy => ("cudaMemcpyAsync", 41),
            Api::EventRecord => ("cudaEventRecord", 135),
            Api::StreamWait => ("cudaStreamWaitEvent", 147),
            Api::DeviceSync => ("cudaDeviceSynchronize", 165),
            Api::StreamSync => ("cudaStreamSynchronize", 131),
        }
    }

    fn external(&self, event: &Event) -> u64 {
        match self.layout.external {
            ExternalStyle::Correlation => event.correlation,
            ExternalStyle::Operator => event.external,
        }
    }

    fn launch_flow(&mut self, out: &mut Vec<u8>, start: bool, event: &Event, place: Place) {
        let (cat, name) = self.layout.flow;
        let flow = Flow { start, id: event.correlation, cat, name };
        self.flow(out, &flow, place, event.start);
    }

    /// Opens a device event and writes the arguments all of them have.
    fn device_event(
        &mut self,
        out: &mut Vec<u8>,
        cats: (&str, &str),
        name: &str,
        stream: u32,
        event: &Event,
    ) {
        let cat = if self.layout.capital { cats.1 } else { cats.0 };
        self.begin(out, cat, name, Place::Stream(stream), event);
        let key = if self.layout.capital { "external id" } else { "External id" };
        let external = self.external(event);
        let (device, correlation) = (self.device(), event.correlation);
        if self.layout.vendor == Vendor::Hip {
            put(out, format_args!("\"{key}\": {external}, \"device\": {device}, "));
        } else {
            put(out, format_args!("\"{key}\": {external}, \"queued\": 0, \"device\": {device}, "));
            out.extend_from_slice(b"\"context\": 1,\n      ");
        }
        put(out, format_args!("\"stream\": {stream}, \"correlation\": {correlation}"));
    }

    fn geometry(&self, out: &mut Vec<u8>, grid: u64, block: u32) {
        if self.layout.vendor == Vendor::Hip {
            put(out, format_args!(", \"kind\": \"Dispatch Kernel\", \"grid\": [{grid}, 1, 1]"));
            put(out, format_args!(", \"block\": [{block}, 1, 1]"));
            return;
        }
        let blocks = grid as f64 / f64::from(self.spec.device.multiprocessors);
        let warps = blocks * f64::from(block) / 32.0;
        out.extend_from_slice(b",\n      \"registers per thread\": 32, \"shared memory\": 0");
        put(out, format_args!(", \"blocks per SM\": {blocks:.6}, \"warps per SM\": {warps:.6}"));
        put(out, format_args!(",\n      \"grid\": [{grid}, 1, 1], \"block\": [{block}, 1, 1]"));
        let occupancy = (warps / 64.0 * 100.0).clamp(0.0, 100.0) as u32;
        put(out, format_args!(",\n      \"est. achieved occupancy %\": {occupancy}"));
    }

    pub(super) fn kernel(&mut self, out: &mut Vec<u8>, event: &Event, kernel: u32) {
        let (stream, _) = self.streams();
        let kernel = &self.program.kernels[kernel as usize];
        self.device_event(out, ("kernel", "Kernel"), kernel.name, stream, event);
        self.geometry(out, kernel.grid, kernel.block);
        self.end(out);
        self.launch_flow(out, false, event, Place::Stream(stream));
    }

    pub(super) fn comm_kernel(&mut self, out: &mut Vec<u8>, event: &Event, bucket: u32) {
        let (_, stream) = self.streams();
        let name = self.spec.nccl.unwrap_or(self.layout.nccl).all_reduce_kernel();
        self.device_event(out, ("kernel", "Kernel"), name, stream, event);
        self.geometry(out, 8, 544);
        let keyword = self.layout.comms == CommsStyle::Keyword;
        if keyword && self.layout.vendor == Vendor::Cuda {
            out.extend_from_slice(b",\n      ");
            out.extend_from_slice(self.comms_args[bucket as usize].as_bytes());
        }
        self.end(out);
        self.launch_flow(out, false, event, Place::Stream(stream));
        if keyword {
            let place = Place::Stream(stream);
            self.begin(out, "gpu_user_annotation", "nccl:all_reduce", place, event);
            put(out, format_args!("\"External id\": {}", event.external));
            self.end(out);
        }
    }

    pub(super) fn memcpy(&mut self, out: &mut Vec<u8>, event: &Event, kind: CopyKind, bytes: u64) {
        let (stream, _) = self.streams();
        let hip = self.layout.vendor == Vendor::Hip;
        let (name, short) = match (kind, hip) {
            (CopyKind::ToDevice, false) => ("Memcpy HtoD (Pinned -> Device)", "HtoD"),
            (CopyKind::ToHost, false) => ("Memcpy DtoH (Device -> Pageable)", "DtoH"),
            (CopyKind::ToDevice, true) => ("Memcpy HtoD (Host -> Device)", "HtoD"),
            (CopyKind::ToHost, true) => ("Memcpy DtoH (Device -> Host)", "DtoH"),
        };
        self.device_event(out, ("gpu_memcpy", "Memcpy"), name, stream, event);
        if hip {
            put(out, format_args!(", \"kind\": \"{short}\", \"bytes\": {bytes}"));
        } else {
            let rate = bytes as f64 / (event.end - event.start).max(1) as f64;
            put(out, format_args!(",\n      \"bytes\": {bytes}"));
            put(out, format_args!(", \"memory bandwidth (GB/s)\": {rate:.6}"));
        }
        self.end(out);
        self.launch_flow(out, false, event, Place::Stream(stream));
    }
}

const fn is_launch(api: Api) -> bool {
    matches!(api, Api::Launch | Api::LaunchEx | Api::Memcpy)
}

const fn hip_call(api: Api) -> (&'static str, u32) {
    match api {
        Api::Launch => ("hipLaunchKernel", 107),
        Api::LaunchEx => ("hipExtLaunchKernel", 62),
        Api::Memcpy => ("hipMemcpyWithStream", 153),
        Api::EventRecord => ("hipEventRecord", 67),
        Api::StreamWait => ("hipStreamWaitEvent", 192),
        Api::DeviceSync => ("hipDeviceSynchronize", 48),
        Api::StreamSync => ("hipStreamSynchronize", 191),
    }
}
